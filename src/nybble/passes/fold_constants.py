"""Computes at load what depends on constants alone.

does            runs the reference of calls whose tensors are all constants; where a pattern of the
                exporter did not match, it leaves such dequantized weights; and of calls that read
                no element at all (full, arange, full_like: only a shape)
needs           fold_prepack
does not handle results larger than LARGEST bytes, of calls that read nothing LARGEST_FILL, which
                stay calls on the device
before -> after w = dequantize(const int8); y = conv(x, w)  ->  y = conv(x, const float32)
"""

from __future__ import annotations

import numpy as np

from nybble.contract import Kernel
from nybble.devices import run_reference
from nybble.graph import Call, Graph, Value, nbytes

__all__ = ["fold_constants"]

LARGEST = 1 << 30
LARGEST_FILL = 1 << 20


def fold_constants(graph: Graph) -> Graph:
    """The graph without calls on constants alone."""
    folded: dict[Value, Value] = {}
    calls: list[Call] = []
    for call in graph.calls:
        known = {n: folded[v] for n, v in call.inputs.items() if v in folded}
        current = call.replaced(**known) if known else call
        if _is_constant(current):
            unread = {
                n: np.broadcast_to(np.zeros((), v.dtype.numpy), v.shape)
                for n, v in current.inputs.items()
                if v.constant is None
            }
            results = run_reference(current, unread)
            for value, result in zip(call.outputs, results, strict=True):
                folded[value] = Value(value.name, value.dtype, value.shape, result)
        else:
            calls.append(current)
    return graph.with_calls(calls).substitute(folded)


def _is_constant(call: Call) -> bool:
    read = [value for name, value in call.inputs.items() if _reads(call, name)]
    size = sum(nbytes(value) for value in call.outputs)
    if not read:
        return size <= LARGEST_FILL
    return size <= LARGEST and all(value.constant is not None for value in read)


def _reads(call: Call, name: str) -> bool:
    """Whether any way to run the call reads the tensor's elements, not its shape alone."""
    kernels = call.operator.kernels
    return not kernels or any(not isinstance(k, Kernel) or name not in k.unused for k in kernels)
