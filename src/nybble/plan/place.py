"""Decides which values share one place: aliases, results written in place, and states.

A value's *root* is the value in whose buffer it lies. Where writing in place would destroy what is
read later, a copy is inserted first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from nybble.contract import REGISTRY, ROW_MAJOR, Alias, Kernel, Layout
from nybble.graph import Graph, Value, make_call

from .choose import Choice, Chosen

__all__ = ["Placement", "place_values"]

COPY = "nybble.copy.default"


@dataclass(frozen=True)
class Placement:
    """Choices with copies inserted, each aliased value's root, and the outputs to read."""

    choices: tuple[Choice, ...]
    roots: Mapping[Value, Value]
    outputs: tuple[Value, ...]
    finals: tuple[Value, ...]
    layouts: Mapping[Value, Layout]

    def root(self, value: Value) -> Value:
        """The value in whose buffer ``value`` lies."""
        return self.roots.get(value, value)


def place_values(graph: Graph, chosen: Chosen, *, keep: bool = False) -> Placement:
    """Place every value of a graph whose kernels are chosen; ``keep`` overwrites none."""
    placer = _Placer(graph, chosen, keep)
    for index, choice in enumerate(chosen.choices):
        placer.add(index, choice)
    placer.store_states()
    return Placement(
        tuple(placer.choices),
        placer.roots,
        tuple(placer.outputs),
        chosen.finals,
        placer.layouts,
    )


class _Placer:
    def __init__(self, graph: Graph, chosen: Chosen, keep: bool) -> None:
        self.graph = graph
        self.keep = keep
        self.finals = chosen.finals
        self.layouts = dict(chosen.layouts)
        self.outputs = list(chosen.outputs)
        self.roots: dict[Value, Value] = {}
        self.choices: list[Choice] = []
        self.numbers = count()
        self.last_read = self._last_reads(chosen.choices)
        self.protected = {*graph.inputs, *(state.value for state in graph.states)}
        self.made_at: dict[Value, int] = {}

    def _last_reads(self, choices: Sequence[Choice]) -> dict[Value, int]:
        """The last choice that reads each value, aliases of it included; outputs after all."""
        last = {value: len(choices) for value in (*self.outputs, *self.finals)}
        for index in reversed(range(len(choices))):
            choice = choices[index]
            for value in choice.call.inputs.values():
                last.setdefault(value, index)
            if isinstance(choice.kernel, Alias):
                source = choice.call.inputs[choice.kernel.source]
                later = last.get(choice.call.outputs[0], index)
                last[source] = max(last[source], later)
        return last

    def root(self, value: Value) -> Value:
        return self.roots.get(value, value)

    def add(self, index: int, choice: Choice) -> None:
        call, kernel = choice.call, choice.kernel
        if isinstance(kernel, Alias):
            source = call.inputs[kernel.source]
            if source.constant is None:
                self.roots[call.outputs[0]] = self.root(source)
        elif isinstance(kernel, Kernel) and kernel.in_place:
            choice = self._write_in_place(index, choice, kernel)
        self.choices.append(choice)
        for value in call.outputs:
            self.made_at[value] = index

    def _write_in_place(self, index: int, choice: Choice, kernel: Kernel) -> Choice:
        results = dict(
            zip((o.name for o in choice.call.operator.outputs), choice.call.outputs, strict=True)
        )
        changed: dict[str, Value] = {}
        for output, argument in kernel.in_place.items():
            value = choice.call.inputs[argument]
            others = choice.call.inputs.keys() - {argument, *changed}
            if self._reads(choice, others, value) or not self._may_overwrite(
                value, results[output], index
            ):
                value = self._copy(value, choice.layout(argument))
                changed[argument] = value
            self.roots[results[output]] = self.root(value)
        if not changed:
            return choice
        return Choice(choice.call.replaced(**changed), kernel)

    def _reads(self, choice: Choice, names: Collection[str], value: Value) -> bool:
        """Whether one of the tensors called ``names`` lies where ``value`` does."""
        return any(
            choice.bound(name) and self.root(choice.call.inputs[name]) is self.root(value)
            for name in names
        )

    def _may_overwrite(self, value: Value, result: Value, index: int) -> bool:
        """Whether nothing reads ``value``, or another value in its place, after this call."""
        if value.constant is not None or self.keep:
            return False
        root = self.root(value)
        sharing = [v for v in (*self.roots, root) if self.root(v) is root]
        if any(self.last_read.get(v, -1) > index for v in sharing):
            return False
        if root in self.protected:
            return any(
                state.value is root and final is result
                for state, final in zip(self.graph.states, self.finals, strict=True)
            )
        return True

    def _copy(self, value: Value, layout: Layout) -> Value:
        operator = REGISTRY[COPY]
        call = make_call(
            operator, {"x": value}, lambda: f"{value.name}_copy_{next(self.numbers)}",
            f"copy of %{value.name}",
        )  # fmt: skip
        plain = operator.kernels[0]
        assert isinstance(plain, Kernel)
        kernel = replace(plain, layouts={"x": layout, "out": layout})
        self.choices.append(Choice(call, kernel))
        self.layouts[call.outputs[0]] = layout
        return call.outputs[0]

    def store_states(self) -> None:
        """Make each state's final value lie where the state does."""
        stored = [
            (state.value, final)
            for state, final in zip(self.graph.states, self.finals, strict=True)
            if self.root(final) is not state.value and not self._place_directly(state.value, final)
        ]
        overwritten = {value for value, _ in stored}
        for number, output in enumerate(self.outputs):
            if output.constant is None and self.root(output) in overwritten:
                self.outputs[number] = self._copy(output, ROW_MAJOR)
        fresh = [
            (value, self._copy(final, self.layouts[value]))
            if final.constant is None and self.root(final) in overwritten
            else (value, final)
            for value, final in stored
        ]
        for value, final in fresh:
            self.roots[self._copy(final, self.layouts[value])] = value

    def _place_directly(self, state: Value, final: Value) -> bool:
        """Let the call that makes ``final`` write into the state's buffer, if that is safe."""
        if self.keep or final.constant is not None or final not in self.made_at:
            return False
        if self.root(final) is not final:
            return False
        if any(v is final for v in (*self.graph.inputs, *(s.value for s in self.graph.states))):
            return False
        made = self.made_at[final]
        sharing = [v for v in (*self.roots, state) if self.root(v) is state]
        if any(self.last_read.get(v, -1) >= made for v in sharing):
            return False
        for value in [v for v in self.roots if self.roots[v] is final]:
            self.roots[value] = state
        self.roots[final] = state
        return True
