"""Computes at load what depends on constants alone.

does            runs the reference of calls whose tensors are all constants; where a pattern of the
                exporter did not match, it leaves such dequantized weights
needs           fold_prepack
does not handle results larger than LARGEST bytes, which stay calls on the device
before -> after w = dequantize(const int8); y = conv(x, w)  ->  y = conv(x, const float32)
"""

from __future__ import annotations

from nybble.devices import run_reference
from nybble.graph import Call, Graph, Value, nbytes

__all__ = ["fold_constants"]

LARGEST = 1 << 30


def fold_constants(graph: Graph) -> Graph:
    """The graph without calls on constants alone."""
    folded: dict[Value, Value] = {}
    calls: list[Call] = []
    for call in graph.calls:
        known = {n: folded[v] for n, v in call.inputs.items() if v in folded}
        current = call.replaced(**known) if known else call
        if _is_constant(current):
            results = run_reference(current, {})
            for value, result in zip(call.outputs, results, strict=True):
                folded[value] = Value(value.name, value.dtype, value.shape, result)
        else:
            calls.append(current)
    return graph.with_calls(calls).substitute(folded)


def _is_constant(call: Call) -> bool:
    inputs = call.inputs.values()
    small = sum(nbytes(value) for value in call.outputs) <= LARGEST
    return bool(inputs) and small and all(value.constant is not None for value in inputs)
