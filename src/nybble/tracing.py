"""What every call of a graph gives on a device: the ground of ``verify`` and ``compare``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from nybble.contract import AnyKernel, Array
from nybble.contract.layouts import Words
from nybble.devices import Device, Executable, States
from nybble.graph import Call, Graph, Value
from nybble.plan import HostCall, Place, Plan, make_plan
from nybble.plan.place import COPY

__all__ = ["Trace", "array_of", "prepared", "run_graph", "trace_graph"]


@dataclass(frozen=True, eq=False)
class Trace:
    """A run that kept every value.

    ``results`` are those of each of the plan's calls; ``values`` holds them and the inputs and
    states by value.
    """

    plan: Plan
    results: tuple[tuple[Array, ...], ...]
    values: Mapping[Value, Array]

    @property
    def hosted(self) -> frozenset[int]:
        """Positions of the calls that ran on the host."""
        return frozenset(step.call for step in self.plan.steps if isinstance(step, HostCall))

    def array(self, value: Value) -> Array:
        """A value's content; see :func:`array_of`."""
        return array_of(value, self.values)


def trace_graph(device: Device, graph: Graph, inputs: Sequence[Array]) -> Trace:
    """Run a graph so that every call's results are kept; states begin as in the file."""
    plan = make_plan(graph, device.capabilities, keep=True)
    with prepared(device, plan) as executable:
        traced = executable.trace(inputs)
    values: dict[Value, Array] = dict(zip((p.value for p in plan.inputs), inputs, strict=True))
    values.update((state.place.value, state.initial) for state in plan.states)
    results = _without_overwritten(plan, traced, values)
    return Trace(plan, results, values)


def run_graph(
    device: Device,
    graph: Graph,
    inputs: Sequence[Array],
    forced: Mapping[Call, AnyKernel] | None = None,
) -> list[Array]:
    """The outputs of a graph, run as programs are: buffers shared, states as in the file."""
    with prepared(device, make_plan(graph, device.capabilities, forced=forced)) as executable:
        return executable.run(inputs)


@contextmanager
def prepared(device: Device, plan: Plan, states: States | None = None) -> Iterator[Executable]:
    """A plan on a device, closed at the end, with ``states`` or with states of its own."""
    kept = device.new_states() if states is None else states
    executable = device.prepare(plan, kept)
    try:
        yield executable
    finally:
        executable.close()
        if states is None:
            kept.close()


def array_of(value: Value, values: Mapping[Value, Array]) -> Array:
    """A value's content: its own if it is a constant, else that of the run."""
    return values[value] if value.constant is None else value.constant


def _without_overwritten(
    plan: Plan, traced: Sequence[tuple[Array, ...]], values: dict[Value, Array]
) -> tuple[tuple[Array, ...], ...]:
    """The results of every call, added to ``values``.

    The planner copies what a call writes over; after the run such a copy holds the call's result,
    so what it held before is taken from its source. Views of a state's first content hold what the
    run left in the state; their words are those of the first content.
    """
    true = []
    first = {s.place.value: s.place.layout.pack(s.initial, {}) for s in plan.states}
    stepped = {step.call for step in plan.steps}
    for index, (call, found) in enumerate(zip(plan.calls, traced, strict=True)):
        results = found
        viewed = next((first[value] for value in call.inputs.values() if value in first), None)
        if call.operator.name == COPY:
            results = (array_of(call.inputs["x"], values),)
        elif viewed is not None and index not in stepped:
            first.update(dict.fromkeys(call.outputs, viewed))
            results = tuple(_held(place, viewed) for place in plan.places[index])
        values.update(zip(call.outputs, results, strict=True))
        true.append(results)
    return tuple(true)


def _held(place: Place, words: Words) -> Array:
    """The value that ``words`` are in its layout."""
    assert place.layout.unpack is not None
    return place.layout.unpack(words[: place.nbytes // 4], place.value.dtype, place.value.shape)
