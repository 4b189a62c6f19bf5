"""Gradients of normalizations."""

from __future__ import annotations

import math
from collections.abc import Mapping

from nybble.graph import Call, GraphBuilder, Value
from nybble.graph.gradients import gradient

__all__: list[str] = []

Gradients = Mapping[str, Value]


def _input_gradient(
    b: GraphBuilder, call: Call, d_out: Value, length: int, *, center: bool
) -> Value:
    x, weight = call.arguments["x"], call.arguments["weight"]
    shape = (math.prod(x.shape) // max(1, length), length)
    d_x = b.call(
        "nybble.norm_backward.default",
        d_out=b.math.reshape(d_out, shape),
        x=b.math.reshape(x, shape),
        weight=None if weight is None else b.math.reshape(weight, (length,)),
        eps=call.arguments["eps"],
        center=center,
    )
    return b.math.reshape(d_x, x.shape)


@gradient("aten.native_layer_norm.default")
def layer_norm(
    b: GraphBuilder,
    call: Call,
    d_out: Value | None,
    d_mean: Value | None = None,
    d_rstd: Value | None = None,
) -> Gradients:
    """From the first result alone; mean and deviation are not read by programs."""
    if d_out is None or d_mean is not None or d_rstd is not None:
        return {}
    x, shape = call.arguments["x"], call.arguments["normalized_shape"]
    normal, _, _ = b.call(
        "aten.native_layer_norm.default",
        x=x, normalized_shape=shape, weight=None, bias=None, eps=call.arguments["eps"],
    )  # fmt: skip
    return {
        "x": _input_gradient(b, call, d_out, math.prod(shape), center=True),
        "weight": b.math.sum_to(b.math.mul(d_out, normal), shape),
        "bias": b.math.sum_to(d_out, shape),
    }


@gradient("et_vk.rms_norm.default")
def rms_norm(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """The weight gets d times the normalized input, summed over rows."""
    x, weight = call.arguments["x"], call.arguments["weight"]
    length = x.shape[-1]
    ones = b.constant([1.0] * length)
    normal = b.call("et_vk.rms_norm.default", x=x, weight=ones, eps=call.arguments["eps"])
    return {
        "x": _input_gradient(b, call, d_out, length, center=False),
        "weight": b.math.sum_to(b.math.mul(d_out, normal), weight.shape),
    }


@gradient("aten._native_batch_norm_legit_no_training.default")
def batch_norm(
    b: GraphBuilder,
    call: Call,
    d_out: Value | None,
    d_mean: Value | None = None,
    d_rstd: Value | None = None,
) -> Gradients:
    """With fixed statistics it is a scale a channel."""
    if d_out is None or d_mean is not None or d_rstd is not None:
        return {}
    x, weight = call.arguments["x"], call.arguments["weight"]
    variance = call.arguments["variance"]
    scale = b.call("aten.rsqrt.default", x=b.math.add(variance, call.arguments["eps"]))
    if weight is not None:
        scale = b.math.mul(scale, weight)
    shape = (*scale.shape, *(1 for _ in x.shape[2:]))
    return {"x": b.math.mul(d_out, b.math.reshape(scale, shape))}
