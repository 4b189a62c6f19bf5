"""Fuses a clamp between equal quantization parameters into its producer's code range.

does            int8 producer -> dequantize -> clamp/hardtanh/relu (or nothing) -> quantize, all
                with one scale and zero point, becomes the producer with a narrower code range
needs           fold_activation. Exact: with equal parameters quantize(dequantize(q)) is q, and
                quantization is monotone, so the clamp acts on codes
does not handle different parameters, and a producer whose codes or floats are read elsewhere too
before -> after y = conv(x); f = dequantize(y); g = hardtanh(f, 0, 6); z = quantize(g)
                ->  z = conv(x, code_min=.., code_max=..)
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from nybble.graph import Call, Graph, Value
from nybble.ops import arithmetic

__all__ = ["fuse_code_range"]

QUANTIZE = "quantized_decomposed.quantize_per_tensor.default"
DEQUANTIZE = "quantized_decomposed.dequantize_per_tensor.default"
_CLAMPS = {
    "aten.hardtanh.default": ("min_val", "max_val"),
    "aten.clamp.default": ("low", "high"),
}
_RELU = "aten.relu.default"


def fuse_code_range(graph: Graph) -> Graph:
    """The graph with int8 clamps fused; repeats until nothing fuses."""
    while True:
        fused = _fuse_one(graph)
        if fused is None:
            return graph
        graph = fused


def _fuse_one(graph: Graph) -> Graph | None:
    producers, users = graph.producers(), graph.users()
    for call in graph.calls:
        if call.operator.name != QUANTIZE:
            continue
        chain = _chain(call, producers, users, graph)
        if chain is None:
            continue
        producer, dequantize, clamp = chain
        low, high = _code_range(call, _clamp_bounds(clamp))
        calls = [
            _narrowed(item, low, high) if item is producer else item
            for item in graph.calls
            if item not in (call, dequantize, clamp)
        ]
        return graph.with_calls(calls).substitute({call.outputs[0]: producer.outputs[0]})
    return None


def _chain(
    quantize: Call,
    producers: Mapping[Value, Call],
    users: Mapping[Value, list[Call]],
    graph: Graph,
) -> tuple[Call, Call, Call | None] | None:
    """The producer, the dequantize and the clamp that end in ``quantize``, if they fuse."""

    def sole_producer(value: Value) -> Call | None:
        lone = len(users.get(value, [])) == 1 and value not in graph.results
        return producers.get(value) if lone else None

    clamp = None
    before = sole_producer(quantize.inputs["x"])
    if before is not None and before.operator.name in (*_CLAMPS, _RELU):
        clamp = before
        before = sole_producer(next(iter(clamp.inputs.values())))
    if before is None or before.operator.name != DEQUANTIZE:
        return None
    if any(before.arguments[n] != quantize.arguments[n] for n in ("scale", "zero_point")):
        return None
    producer = sole_producer(before.inputs["x"])
    if producer is None or _range_names(producer) is None:
        return None
    return producer, before, clamp


def _range_names(call: Call) -> tuple[str, str] | None:
    for low, high in (("code_min", "code_max"), ("quant_min", "quant_max")):
        if low in call.arguments and call.outputs[0].dtype.name == "int8":
            return None if call.operator.name == DEQUANTIZE else (low, high)
    return None


def _code_range(quantize: Call, limits: tuple[float, float]) -> tuple[int, int]:
    with np.errstate(over="ignore"):
        bounds = np.array(limits, np.float64).astype(np.float32)
    codes = arithmetic.quantize(
        bounds,
        quantize.arguments["scale"],
        quantize.arguments["zero_point"],
        quantize.arguments["quant_min"],
        quantize.arguments["quant_max"],
    )
    return int(codes[0]), int(codes[1])


def _clamp_bounds(clamp: Call | None) -> tuple[float, float]:
    if clamp is None:
        return -math.inf, math.inf
    if clamp.operator.name == _RELU:
        return 0.0, math.inf
    low, high = (clamp.arguments[name] for name in _CLAMPS[clamp.operator.name])
    # A bound that is NaN bounds nothing, as in the clamps' references.
    low = -math.inf if low is None or math.isnan(low) else low
    high = math.inf if high is None or math.isnan(high) else high
    return min(low, high), high


def _narrowed(call: Call, low: int, high: int) -> Call:
    names = _range_names(call)
    assert names is not None
    have = [call.arguments[name] for name in names]
    bounds = {name: min(max(code, low), high) for name, code in zip(names, have, strict=True)}
    return call.replaced(**bounds)
