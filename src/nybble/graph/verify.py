"""The grammar of a graph, checked at every seam between passes."""

from __future__ import annotations

from nybble.contract import DTYPES

from .ir import Graph, Value

__all__ = ["verify_graph"]


def verify_graph(graph: Graph, stage: str) -> None:
    """Raise AssertionError, naming the stage and the call, unless the graph is well formed.

    Every value is defined before use and once; result types are what the contract derives;
    there is one spec an input and one an output.
    """
    known: set[Value] = {*graph.inputs, *(state.value for state in graph.states)}
    for call in graph.calls:
        where = f"after {stage}: {call.operator.name} ({call.origin})"
        for name, value in call.inputs.items():
            if value.constant is None and value not in known:
                raise AssertionError(f"{where}: argument '{name}' (%{value.name}) is not defined")
        for value, derived in zip(call.outputs, call.bound.outputs, strict=True):
            if value in known:
                raise AssertionError(f"{where}: %{value.name} is defined twice")
            if (value.dtype, value.shape) != (derived.dtype, derived.shape):
                raise AssertionError(f"{where}: %{value.name} is {value}, expected {derived}")
            known.add(value)
    for value in graph.results:
        if value.constant is None and value not in known:
            raise AssertionError(f"after {stage}: result %{value.name} is not defined")
    for state in graph.states:
        types = {(v.dtype, v.shape) for v in (state.value, state.final)}
        if types != {(DTYPES[state.initial.dtype.name], state.initial.shape)}:
            raise AssertionError(f"after {stage}: state {state.name} changes its type")
    if len(graph.inputs) != len(graph.input_specs) or len(graph.outputs) != len(graph.output_specs):
        raise AssertionError(f"after {stage}: the specs do not match inputs and outputs")
