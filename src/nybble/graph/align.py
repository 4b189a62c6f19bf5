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
) -> tuple[Pairs, Pairs] | str:
    """(value of the delegate, value of the method) for inputs and for outputs.

    A call with more arguments than the graph has lost an unused input: the outputs are its last
    arguments, and the inputs are matched in order by type. A call with fewer has mutated buffers.

    Returns:
        The pairs, or a sentence saying why they cannot be told.
    """
    wanted = len(graph.inputs) + len(graph.outputs)
    if len(call.args) < wanted:
        return f"{where} mutates buffers ({wanted - len(call.args)}), which is not supported yet"
    split = len(call.args) - len(graph.outputs)
    outputs = list(zip(graph.outputs, call.args[split:], strict=True))
    given = call.args[:split]
    if len(given) == len(graph.inputs):
        return list(zip(graph.inputs, given, strict=True)), outputs
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
    return inputs, outputs


def _fits(inside: formats.DelegateValue, outside: formats.FileValue) -> bool:
    if isinstance(inside, formats.DelegateTensor) and isinstance(outside, formats.FileTensor):
        same = _SAME.get(outside.dtype, outside.dtype) == _SAME.get(inside.dtype, inside.dtype)
        return same and inside.shape == outside.shape
    return not isinstance(inside, formats.DelegateTensor) and not isinstance(
        outside, formats.FileTensor
    )
