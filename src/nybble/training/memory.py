"""Keeps activations, or recomputes them, so that a step fits a memory budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from itertools import count

from nybble.errors import OutOfDeviceMemoryError
from nybble.graph import Call, Graph, Value, make_call
from nybble.passes.drop_dead_calls import drop_dead_calls
from nybble.plan import Plan

from .step import StepGraph

__all__ = ["fit_memory", "recompute"]

_CHEAP = 8
"""Operations an element up to which a value is recomputed before any matrix product is."""


def fit_memory(
    step: StepGraph, budget: int | None, plan_of: Callable[[Graph], Plan]
) -> tuple[Graph, Plan]:
    """The graph of a step whose plan needs at most ``budget`` bytes of activations.

    The activations that the gradients read are all kept if they fit. Otherwise values that cost
    few operations (activation functions, normalizations) are dropped and computed again where the
    gradients need them; if that does not do, only every second kept value stays, every third, and
    so on, and the segment between two is computed again from the one before it. The first
    of these that fits is taken: it recomputes least. Results do not change by a bit, since the
    same kernels run on the same operands.

    Args:
        step: the graph of a step.
        budget: bytes for intermediate values, inputs and outputs; None keeps everything.
        plan_of: plans a graph.

    Raises:
        OutOfDeviceMemoryError: no choice fits; the message says what the smallest needs.
    """
    best: tuple[Graph, Plan] | None = None
    for dropped in _choices(step):
        graph = recompute(step, dropped) if dropped else step.graph
        plan = plan_of(graph)
        if budget is None or plan.activation_bytes <= budget:
            return graph, plan
        if best is None or plan.activation_bytes < best[1].activation_bytes:
            best = graph, plan
    assert best is not None
    raise OutOfDeviceMemoryError(
        f"memory_budget: a step needs at least {best[1].activation_bytes:,} bytes for its "
        f"activations and gradients, {budget:,} are allowed. Raise the budget, train fewer layers, "
        "or export the program with a smaller batch"
    )


def _choices(step: StepGraph) -> Iterator[set[Value]]:
    """Sets of values to drop, those first that cost least."""
    yield set()
    kept = _kept(step)
    producers = step.graph.producers()
    cheap = {value for value in kept if _is_cheap(producers[value], value, step, kept)}
    if cheap:
        yield cheap
    stride = 2
    while stride <= 2 * len(kept):
        yield {value for i, value in enumerate(kept) if i % stride != stride - 1}
        stride += max(1, stride // 2)


def _is_cheap(call: Call, value: Value, step: StepGraph, kept: Collection[Value]) -> bool:
    """Whether few operations on values that are kept anyhow give ``value`` again."""
    operations = int(call.operator.operations.evaluate(call.bound.names))
    at_hand = all(v not in step.forward or v in kept for v in call.inputs.values())
    return at_hand and operations <= _CHEAP * math.prod(value.shape)


def _kept(step: StepGraph) -> list[Value]:
    """The values of the forward pass that later calls read, in order."""
    read = {
        value
        for call in step.graph.calls
        if not step.forward.intersection(call.outputs)
        for value in call.inputs.values()
    }
    ends = set(step.graph.results)
    return [
        value
        for call in step.graph.calls
        for value in call.outputs
        if value in step.forward and value in read and value not in ends
    ]


def recompute(step: StepGraph, dropped: Collection[Value]) -> Graph:
    """The graph in which gradients read ``dropped`` values computed again, not kept."""
    return _Rewriting(step, dropped).graph()


class _Rewriting:
    def __init__(self, step: StepGraph, dropped: Collection[Value]) -> None:
        self.step = step
        self.kept = {value for value in _kept(step) if value not in dropped}
        self.producers = step.graph.producers()
        self.copies: dict[Value, Value] = {}
        self.calls: list[Call] = []
        self.numbers = count()

    def graph(self) -> Graph:
        for call in self.step.graph.calls:
            if self.step.forward.intersection(call.outputs):
                self.calls.append(call)
            else:
                self.calls.append(self._reading_copies(call))
        return drop_dead_calls(self.step.graph.with_calls(self.calls))

    def _reading_copies(self, call: Call) -> Call:
        changed = {name: self._copy(value) for name, value in call.inputs.items()}
        if all(changed[name] is value for name, value in call.inputs.items()):
            return call
        return call.replaced(**changed)

    def _copy(self, value: Value) -> Value:
        """``value``, or what is computed again in its place."""
        ends = self.step.graph.results
        if value not in self.step.forward or value in self.kept or value in ends:
            return value
        if value not in self.copies:
            call = self.producers[value]
            arguments = dict(call.arguments)
            for name, read in call.inputs.items():
                arguments[name] = self._copy(read)
            again = make_call(
                call.operator,
                arguments,
                lambda: f"{value.name}_again_{next(self.numbers)}",
                call.origin,
            )
            self.calls.append(again)
            self.copies.update(zip(call.outputs, again.outputs, strict=True))
        return self.copies[value]
