"""Gradients of views, permutations, casts and other rearrangements."""

from __future__ import annotations

from collections.abc import Mapping

from nybble.graph import Call, GraphBuilder, Value
from nybble.graph.gradients import gradient

__all__: list[str] = []

Gradients = Mapping[str, Value]


@gradient(
    "aten.view_copy.default",
    "aten.squeeze_copy.dims",
    "aten.unsqueeze_copy.default",
    "aten.clone.default",
    "aten.alias_copy.default",
    "dim_order_ops._clone_dim_order.default",
    "et_vk.prepack.default",
)
def view(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """d under the shape of x."""
    return {"x": b.math.reshape(d_out, call.arguments["x"].shape)}


@gradient(
    "dim_order_ops._to_dim_order_copy.default",
    "dim_order_ops._to_dim_order_copy.out",
    "aten._to_copy.default",
    "aten._to_copy.out",
)
def cast(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """d itself: only casts between equal float types are on a gradient's way."""
    return {"x": d_out}


@gradient("aten.permute_copy.default", "aten.permute.default")
def permute(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """d with its axes moved back."""
    rank = len(d_out.shape)
    dims = [d % max(1, rank) for d in call.arguments["dims"]]
    return {"x": b.math.permute(d_out, [dims.index(i) for i in range(rank)])}


@gradient("aten.expand_copy.default")
def expand(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """d summed along the axes of repetition."""
    return {"x": b.math.sum_to(d_out, call.arguments["x"].shape)}


@gradient("aten.select_copy.int")
def select(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """d at the selected index, zeros elsewhere."""
    shape = call.arguments["x"].shape
    dim = call.arguments["dim"] % len(shape)
    one = b.math.reshape(d_out, (*shape[:dim], 1, *shape[dim + 1 :]))
    start = call.arguments["index"] % shape[dim]
    return {"x": b.call("nybble.place.default", x=one, dim=dim, extent=shape[dim], start=start)}


@gradient("aten.slice_copy.Tensor")
def slice_copy(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """d where the slice was taken, zeros elsewhere."""
    shape = call.arguments["x"].shape
    dim, step = call.arguments["dim"] % len(shape), call.arguments["step"]
    bounds = slice(call.arguments["start"], call.arguments["end"], step)
    start = bounds.indices(shape[dim])[0]
    return {
        "x": b.call(
            "nybble.place.default", x=d_out, dim=dim, extent=shape[dim], start=start, step=step
        )
    }


@gradient("aten.flip.default")
def flip(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """d reversed back."""
    return {"x": b.call("aten.flip.default", x=d_out, dims=call.arguments["dims"])}


@gradient("aten.repeat.default")
def repeat(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """d summed over the repetitions."""
    x, repeats = call.arguments["x"], call.arguments["repeats"]
    sizes = (1,) * (len(repeats) - len(x.shape)) + x.shape
    apart = [size for pair in zip(repeats, sizes, strict=True) for size in pair]
    total = b.math.sum(b.math.reshape(d_out, apart), range(0, len(apart), 2)) if apart else d_out
    return {"x": b.math.reshape(total, x.shape)}
