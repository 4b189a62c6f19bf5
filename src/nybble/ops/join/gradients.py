"""Gradients of joining and padding: each part gets its piece."""

from __future__ import annotations

from collections.abc import Mapping

from nybble.graph import Call, GraphBuilder, Value
from nybble.graph.gradients import gradient

__all__: list[str] = []

Gradients = Mapping[str, Value]


def _piece(b: GraphBuilder, d_out: Value, dim: int, start: int, size: int) -> Value:
    if (start, size) == (0, d_out.shape[dim]):
        return d_out
    value: Value = b.call(
        "aten.slice_copy.Tensor", x=d_out, dim=dim, start=start, end=start + size, step=1
    )
    return value


@gradient("nybble.concat.default")
def concat(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """The piece of d that each tensor became."""
    dim = call.arguments["dim"] % len(d_out.shape)
    found, start = {}, 0
    for name, value in call.inputs.items():
        found[name] = _piece(b, d_out, dim, start, value.shape[dim])
        start += value.shape[dim]
    return found


@gradient("aten.constant_pad_nd.default")
def constant_pad(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """The inner part of d, and zeros for what a negative count cut off."""
    x, pad = call.arguments["x"], call.arguments["pad"]
    value = d_out
    for at in range(0, len(pad), 2):
        dim = len(x.shape) - 1 - at // 2
        before, after = pad[at], pad[at + 1]
        extent = x.shape[dim]
        kept = extent + min(0, before) + min(0, after)
        value = _piece(b, value, dim, max(0, before), kept)
        if kept != extent:
            start = max(0, -before)
            value = b.call("nybble.place.default", x=value, dim=dim, extent=extent, start=start)
    return {"x": value}
