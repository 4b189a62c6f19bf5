"""Gradients of softmax and its logarithm."""

from __future__ import annotations

from collections.abc import Mapping

from nybble.graph import Call, GraphBuilder, Value
from nybble.graph.gradients import gradient

__all__: list[str] = []

Gradients = Mapping[str, Value]


@gradient("aten._softmax.default")
def softmax(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """out * (d - sum(d * out))."""
    return _from_result(b, "nybble.softmax_backward.default", call, d_out)


@gradient("aten._log_softmax.default")
def log_softmax(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """d - exp(out) * sum(d)."""
    return _from_result(b, "nybble.log_softmax_backward.default", call, d_out)


def _from_result(b: GraphBuilder, operator: str, call: Call, d_out: Value) -> Gradients:
    return {"x": b.call(operator, d_out=d_out, value=call.outputs[0], dim=call.arguments["dim"])}
