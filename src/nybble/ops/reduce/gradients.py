"""Gradients of sums, means and extremes along axes."""

from __future__ import annotations

import math
from collections.abc import Mapping

from nybble.graph import Call, GraphBuilder, Value
from nybble.graph.gradients import gradient, no_gradient

__all__: list[str] = []

Gradients = Mapping[str, Value]


def _kept_shape(call: Call) -> tuple[int, ...]:
    """The shape of x with the reduced axes of size 1."""
    shape = call.arguments["x"].shape
    dims = call.arguments["dim"]
    gone = {d % max(1, len(shape)) for d in dims} if dims else range(len(shape))
    return tuple(1 if i in gone else size for i, size in enumerate(shape))


@gradient("aten.sum.dim_IntList")
def total(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """d repeated along the reduced axes."""
    x = call.arguments["x"]
    return {"x": b.math.expand(b.math.reshape(d_out, _kept_shape(call)), x.shape)}


@gradient("aten.mean.dim")
def mean(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """d divided by the number of elements, repeated along the reduced axes."""
    x = call.arguments["x"]
    reduced = math.prod(x.shape) // max(1, math.prod(call.outputs[0].shape))
    share = b.math.mul(b.math.reshape(d_out, _kept_shape(call)), 1 / max(1, reduced))
    return {"x": b.math.expand(share, x.shape)}


no_gradient(
    "aten.amax.default", "aten.amin.default",
    because="which element is the extreme is not kept; use a softmax",
)  # fmt: skip
