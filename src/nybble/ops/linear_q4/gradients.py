"""Gradients of 4-bit layers. Codes get the gradient of the float weight that they stand for."""

from __future__ import annotations

import math
from collections.abc import Mapping

from nybble.graph import Call, GraphBuilder, Value
from nybble.graph.gradients import gradient, no_gradient

__all__: list[str] = []

Gradients = Mapping[str, Value | None]
FROZEN = "its 4-bit table is frozen; only linear layers are trained"


@gradient("et_vk.linear_q4gsw.default", "et_vk.linear_dq8ca_q4gsw.default")
def linear_q4gsw(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """d @ weight, d^T @ x, and d summed over rows; a quantization of x is passed through."""
    x, weight = call.arguments["x"], call.arguments["weight"]
    d_x = b.call(
        "et_vk.linear_q4gsw_backward.default",
        d_out=d_out,
        weight=weight,
        scales=call.arguments["scales"],
        group_size=call.arguments["group_size"],
    )
    if d_x.shape[-1] != x.shape[-1]:
        d_x = b.call("aten.slice_copy.Tensor", x=d_x, dim=-1, start=0, end=x.shape[-1], step=1)
    found = {"x": d_x, "weight": b.call("et_vk.linear_dW.default", d_out=d_out, x=x)}
    found |= {"input_scales": None, "input_zero_points": None}
    bias = call.arguments["bias"]
    if bias is not None and bias.shape[0] == d_out.shape[-1]:
        rows = b.math.reshape(d_out, (math.prod(d_out.shape[:-1]), d_out.shape[-1]))
        found["bias"] = b.math.sum(rows, [0])
    return found


@gradient("et_vk.q4gsw_requant.default")
def requant(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """The straight-through estimator: rounding is passed as if it were not there."""
    return {"latent": d_out}


@gradient("torchao.choose_qparams_affine.default")
def choose_qparams_affine(b: GraphBuilder, call: Call, *d_outs: Value | None) -> Gradients:
    """Nothing flows: layers pass gradients straight through the quantization of their inputs."""
    return {"x": None}


no_gradient("et_vk.embedding_q4gsw.default", because=FROZEN)
no_gradient("et_vk.linear_qcs4w.default", because="layers with one scale an output are frozen")
