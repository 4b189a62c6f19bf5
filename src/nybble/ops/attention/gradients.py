"""Gradients of attention and rotary embeddings."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from nybble.graph import Call, GraphBuilder, Value
from nybble.graph.gradients import gradient, no_gradient

__all__: list[str] = []

Gradients = Mapping[str, Value]


def _matrices(b: GraphBuilder, x: Value) -> Value:
    """Batch and heads as one axis: what a batched matrix product takes."""
    return b.math.reshape(x, (math.prod(x.shape[:-2]), *x.shape[-2:]))


@gradient("et_vk.sdpa.default")
def sdpa(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """The weights are computed again; of scores and weights one matrix each lives at a time."""
    q, k, v = (call.arguments[name] for name in ("q", "k", "v"))
    mask, factor = call.arguments["mask"], float(call.bound.names["factor"])
    scores_shape = (*q.shape[:-1], k.shape[-2])
    keys = _matrices(b, k)
    scores = b.math.matmul(b.math.mul(_matrices(b, q), factor), b.math.transpose(keys))
    if mask is not None:
        scores = b.math.add(b.math.reshape(scores, scores_shape), mask)
    weights = _matrices(b, b.call("aten._softmax.default", x=scores, dim=-1))
    d_rows = _matrices(b, d_out)
    d_weights = b.math.matmul(d_rows, b.math.transpose(_matrices(b, v)))
    d_scores = b.call("nybble.softmax_backward.default", d_out=d_weights, value=weights, dim=-1)
    scaled = b.math.mul(d_scores, factor)
    found = {
        "q": b.math.reshape(b.math.matmul(scaled, keys), q.shape),
        "k": b.math.reshape(b.math.matmul(b.math.transpose(scaled), _matrices(b, q)), k.shape),
        "v": b.math.reshape(b.math.matmul(b.math.transpose(weights), d_rows), v.shape),
    }
    if mask is not None:
        found["mask"] = b.math.reshape(d_scores, scores_shape)
    return found


def _turned_back(
    b: GraphBuilder, call: Call, d_q: Value | None, d_k: Value | None, sin: Value
) -> Gradients:
    """The same rotation with another sine: a rotation's transpose is its inverse."""
    given = {}
    for name, d in (("xq", d_q), ("xk", d_k)):
        shape = call.arguments[name].shape
        given[name] = b.constant(np.zeros(shape, np.float32)) if d is None else d
    rest = {n: v for n, v in call.arguments.items() if n not in ("xq", "xk", "sin")}
    results = b.call(call.operator.name, **given, **rest, sin=sin)
    return dict(zip(("xq", "xk"), results, strict=True))


@gradient("et_vk.apply_rotary_emb.default")
def rotary(b: GraphBuilder, call: Call, d_q: Value | None, d_k: Value | None) -> Gradients:
    """Rotated back."""
    return _turned_back(b, call, d_q, d_k, b.math.neg(call.arguments["sin"]))


@gradient("et_vk.apply_rotary_emb_hf.default")
def rotary_halves(b: GraphBuilder, call: Call, d_q: Value | None, d_k: Value | None) -> Gradients:
    """Rotated back; each half of the heads meets the other half's sine."""
    sin = call.arguments["sin"]
    width = sin.shape[1]
    halves = [
        b.call("aten.slice_copy.Tensor", x=sin, dim=1, start=start, end=start + width // 2, step=1)
        for start in (0, width // 2)
    ]
    moved = [
        b.call("nybble.place.default", x=half, dim=1, extent=width, start=start)
        for half, start in zip(halves, (width // 2, 0), strict=True)
    ]
    return _turned_back(b, call, d_q, d_k, b.math.neg(b.math.add(*moved)))


@gradient("et_vk.apply_rotary_emb_interleaved.default")
def rotary_interleaved(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """Rotated back."""
    freqs = call.arguments["freqs"]
    signs = np.ones(math.prod(freqs.shape), np.float32)
    signs[1::2] = -1
    back = b.math.mul(freqs, b.constant(signs.reshape(freqs.shape)))
    return {"x": b.call(call.operator.name, x=d_out, freqs=back)}


no_gradient(
    "update_cache.default", "custom_sdpa.default", "sdpa_with_kv_cache.default",
    because="it works on a cache that persists between calls; train a method without cache",
)  # fmt: skip
