"""Gradients of matrix products."""

from __future__ import annotations

import math

from nybble.graph import Call, GraphBuilder, Value
from nybble.graph.gradients import gradient

__all__: list[str] = []

Gradients = dict[str, Value]


@gradient("aten.linear.default")
def linear(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """d @ weight, d^T @ x over all leading axes, and d summed over them."""
    x, weight = call.arguments["x"], call.arguments["weight"]
    features = d_out.shape[-1]
    rows = b.math.reshape(d_out, (math.prod(d_out.shape[:-1]), features))
    return {
        "x": b.math.reshape(b.math.matmul(rows, weight), x.shape),
        "weight": b.call("et_vk.linear_dW.default", d_out=d_out, x=x),
        "bias": b.math.sum(rows, [0]),
    }


@gradient("aten.mm.default", "aten.bmm.default")
def matrix_product(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """d @ weight^T and x^T @ d."""
    return _factors(b, call, d_out)


def _factors(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    x, weight = call.arguments["x"], call.arguments["weight"]
    return {
        "x": b.math.matmul(d_out, b.math.transpose(weight)),
        "weight": b.math.matmul(b.math.transpose(x), d_out),
    }


@gradient("aten.addmm.default")
def addmm(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """As of the product, times alpha; the addend gets d times beta."""
    scaled = d_out if call.arguments["alpha"] == 1 else b.math.mul(d_out, call.arguments["alpha"])
    beta = call.arguments["beta"]
    addend = d_out if beta == 1 else b.math.mul(d_out, beta)
    return {**_factors(b, call, scaled), "addend": addend}
