"""Gradients of choices."""

from __future__ import annotations

from collections.abc import Mapping

from nybble.graph import Call, GraphBuilder, Value
from nybble.graph.gradients import gradient

__all__: list[str] = []


@gradient("aten.where.self")
def where(b: GraphBuilder, call: Call, d_out: Value) -> Mapping[str, Value]:
    """d where the operand was taken, zero elsewhere."""
    condition = call.arguments["condition"]
    return {
        "x": b.call("aten.where.self", condition=condition, x=d_out, other=0.0),
        "other": b.call("aten.where.self", condition=condition, x=0.0, other=d_out),
    }
