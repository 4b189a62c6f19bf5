"""The host runs the numpy references: oracle, fallback, the device of a machine without GPU."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nybble.contract import Array, Layout
from nybble.errors import OutOfDeviceMemoryError
from nybble.graph import Value
from nybble.plan import Capabilities, Place, Plan

from .base import DeviceInfo, States, Timing, check_state, run_reference

__all__ = ["HostDevice"]


class HostDevice:
    """Runs every call's reference."""

    def __init__(self) -> None:
        self.info = DeviceInfo(
            name="host",
            adapter=platform.processor() or platform.machine(),
            backend=f"numpy {np.__version__}",
            kind="cpu",
            driver="numpy references",
        )
        self.capabilities = Capabilities(kernels=False)
        self.has_timestamps = True

    def new_states(self) -> HostStates:
        """An empty set of states."""
        return HostStates()

    def prepare(self, plan: Plan, states: States | None = None) -> HostExecutable:
        """Only the states are made ready."""
        own = states if isinstance(states, HostStates) else HostStates()
        own.add(plan)
        return HostExecutable(plan, own)


class HostStates:
    """States as numpy arrays."""

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}
        self._places: dict[str, Place] = {}

    def add(self, plan: Plan) -> None:
        """Take a plan's states, unless they are here already."""
        for state in plan.states:
            self._places.setdefault(state.name, state.place)
            self._arrays.setdefault(state.name, state.initial)

    def names(self) -> tuple[str, ...]:
        """The states' names."""
        return tuple(self._arrays)

    def layouts(self) -> dict[str, Layout]:
        """The layout of each; all are plain arrays here."""
        return {name: place.layout for name, place in self._places.items()}

    def read(self, name: str) -> Array:
        """The content of a state."""
        return self._arrays[name].copy()

    def write(self, name: str, content: Array) -> None:
        """Replace the content of a state."""
        self._arrays[name] = check_state(name, self._places[name], content).copy()

    def put(self, name: str, content: Array) -> None:
        """Replace the content by an array that nobody changes."""
        self._arrays[name] = content

    def close(self) -> None:
        """Drop all states."""
        self._arrays.clear()


@dataclass(frozen=True)
class HostPending:
    """A run that is over."""

    outputs: list[Array]

    def result(self) -> list[Array]:
        """The outputs."""
        return self.outputs


class HostExecutable:
    """A plan on the host: values by name, calls in order."""

    def __init__(self, plan: Plan, states: HostStates) -> None:
        self.plan = plan
        self._states = states

    def submit(self, inputs: Sequence[Array]) -> HostPending:
        """Run at once."""
        return HostPending(self.run(inputs))

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs of the references, copies of the caller's inputs and of constants included.

        Raises:
            OutOfDeviceMemoryError: the host's memory does not hold a result.
        """
        values: dict[Value, Array] = {}
        try:
            self._run(inputs, values)
            return [_lookup(place.value, values).copy() for place in self.plan.outputs]
        except MemoryError as error:
            raise OutOfDeviceMemoryError(
                f"method '{self.plan.name}' exceeds the host's memory: {error}. Use a smaller batch"
            ) from error

    def trace(self, inputs: Sequence[Array]) -> list[tuple[Array, ...]]:
        """Results of every call."""
        values: dict[Value, Array] = {}
        self._run(inputs, values)
        return [tuple(values[value] for value in call.outputs) for call in self.plan.calls]

    def profile(self, inputs: Sequence[Array], repeats: int) -> list[Timing]:
        """Median wall time of each reference."""
        runs = [self._run(inputs, {}) for _ in range(repeats)]
        columns = list(zip(*runs, strict=True))
        seconds = [statistics.median(t for _, t in column) for column in columns]
        start = [column[0][0] for column in columns]
        return [Timing(i, s, t, True) for i, (s, t) in enumerate(zip(seconds, start, strict=True))]

    def adopt(self, plan: Plan) -> bool:
        """Any plan will do: nothing was made for the old one."""
        self.plan = plan
        return True

    def close(self) -> None:
        """Nothing is held."""

    def _run(
        self, inputs: Sequence[Array], values: dict[Value, Array]
    ) -> list[tuple[float, float]]:
        values.update(
            (place.value, array) for place, array in zip(self.plan.inputs, inputs, strict=True)
        )
        values.update((s.place.value, self._states.read(s.name)) for s in self.plan.states)
        begin = time.perf_counter()
        times = []
        for call in self.plan.calls:
            start = time.perf_counter()
            tensors = {n: values[v] for n, v in call.inputs.items() if v.constant is None}
            values.update(zip(call.outputs, run_reference(call, tensors), strict=True))
            times.append((start - begin, time.perf_counter() - start))
        for state in self.plan.states:
            self._states.put(state.name, _lookup(state.final, values))
        return times


def _lookup(value: Value, values: dict[Value, Array]) -> Array:
    return value.constant if value.constant is not None else values[value]
