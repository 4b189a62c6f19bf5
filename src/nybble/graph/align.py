"""Matches the arguments of a delegate's call to the inputs and outputs of its graph."""

from __future__ import annotations

from nybble import formats

__all__ = ["align_arguments"]

Pairs = list[tuple[int, int]]
_SAME = {"int64": "int32", "float64": "float32"}


def align_arguments(
    method: formats.MethodFile,
    call: formats.DelegateCall,
    graph: formats.DelegateGraph,
    where: str,
) -> tuple[Pairs, Pairs, tuple[int, ...]] | str:
    """(value of the delegate, value of the method) for inputs and for outputs.

    A call with more arguments than the graph has lost an unused input: the outputs are its last
    arguments, and the inputs are matched in order by type. A call with fewer has mutated buffers:
    the first outputs of the graph are their new contents, and have no argument.

    Returns:
        The pairs and the outputs without an argument, or a sentence saying why they cannot be
        told.
    """
    missing = max(0, len(graph.inputs) + len(graph.outputs) - len(call.args))
    if missing > len(graph.outputs):
        return f"{where}: it is called with {len(call.args)} values, fewer than its inputs"
    extra, stored = graph.outputs[:missing], graph.outputs[missing:]
    split = len(call.args) - len(stored)
    outputs = list(zip(stored, call.args[split:], strict=True))
    given = call.args[:split]
    if len(given) == len(graph.inputs):
        return list(zip(graph.inputs, given, strict=True)), outputs, extra
    inputs: Pairs = []
    position = 0
    surplus = len(given) - len(graph.inputs)
    for inside in graph.inputs:
        fits = [
            at
            for at in range(position, position + surplus + 1)
            if at < len(given) and _fits(graph.values[inside], method.values[given[at]])
        ]
        if len(fits) != 1:
            return f"{where}: it is ambiguous which argument feeds its input {inside}"
        inputs.append((inside, given[fits[0]]))
        surplus -= fits[0] - position
        position = fits[0] + 1
    return inputs, outputs, extra


def _fits(inside: formats.DelegateValue, outside: formats.FileValue) -> bool:
    if isinstance(inside, formats.DelegateTensor) and isinstance(outside, formats.FileTensor):
        same = _SAME.get(outside.dtype, outside.dtype) == _SAME.get(inside.dtype, inside.dtype)
        return same and inside.shape == outside.shape
    return not isinstance(inside, formats.DelegateTensor) and not isinstance(
        outside, formats.FileTensor
    )
