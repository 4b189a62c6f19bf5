"""Gradients of lookups: rows of the result go back to the rows that they were read from."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from nybble.graph import Call, GraphBuilder, Value
from nybble.graph.gradients import gradient, no_gradient

__all__: list[str] = []

Gradients = Mapping[str, Value]


def _scattered(b: GraphBuilder, rows: Value, index: Value, extent: int) -> Value:
    """Rows ``[n, width]`` summed by index into ``[extent, width]``, negatives from the end."""
    flat = b.math.reshape(index, (math.prod(index.shape),))
    last = b.constant(np.int32(extent - 1))
    lowest = b.constant(np.int32(-extent))
    inside = b.call("aten.minimum.default", x=flat, other=last)
    inside = b.call("aten.maximum.default", x=inside, other=lowest)
    # -1 becomes extent - 1, and 0 stays: indices below zero get extent added.
    below = b.call("aten.clamp.default", x=inside, low=-1, high=0)
    wrapped = b.call("aten.sub.Tensor", x=inside, other=below, alpha=extent)
    value: Value = b.call("nybble.scatter_rows.default", d_out=rows, indices=wrapped, extent=extent)
    return value


@gradient("aten.embedding.default")
def embedding(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """Rows of d summed into the table by token."""
    weight, index = call.arguments["weight"], call.arguments["index"]
    rows = b.math.reshape(d_out, (math.prod(index.shape), weight.shape[1]))
    return {"weight": _scattered(b, rows, index, weight.shape[0])}


@gradient("aten.index_select.default")
def index_select(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """Parts of d summed into the axis by index."""
    x, index = call.arguments["x"], call.arguments["index"]
    if not x.shape:
        return {"x": d_out}
    dim = call.arguments["dim"] % len(x.shape)
    order = [dim, *(i for i in range(len(x.shape)) if i != dim)]
    first = b.math.permute(d_out, order)
    rows = b.math.reshape(first, (index.shape[0], math.prod(first.shape[1:])))
    table = _scattered(b, rows, index, x.shape[dim])
    moved = b.math.reshape(table, (x.shape[dim], *first.shape[1:]))
    return {"x": b.math.permute(moved, [order.index(i) for i in range(len(order))])}


no_gradient("aten.gather.default", because="nybble does not scatter single elements")
