"""Gradients of losses."""

from __future__ import annotations

from collections.abc import Mapping

from nybble.graph import Call, GraphBuilder, Value
from nybble.graph.gradients import gradient

__all__: list[str] = []

Gradients = Mapping[str, Value]


@gradient("nybble.cross_entropy.default")
def cross_entropy(
    b: GraphBuilder, call: Call, d_losses: Value | None, d_dlogits: Value | None
) -> Gradients:
    """The second result, which is the gradient of the losses' sum, times that of each row."""
    if d_losses is None or d_dlogits is not None:
        return {}
    rows = b.math.reshape(d_losses, (*d_losses.shape, 1))
    return {"logits": b.math.mul(call.outputs[1], rows)}
