"""Drops copies that change nothing.

does            removes clones and dimension-order copies that keep type and shape
needs           fold_prepack, so that copies of constants are seen as such
does not handle casts, and views that change the shape (the planner aliases those)
before -> after y = clone(x); z = f(y)  ->  z = f(x)
"""

from __future__ import annotations

from nybble.graph import Call, Graph

__all__ = ["drop_identities"]

COPIES = frozenset(
    {
        "aten.clone.default",
        "aten.alias_copy.default",
        "aten.view_copy.default",
        "dim_order_ops._to_dim_order_copy.default",
        "dim_order_ops._clone_dim_order.default",
    }
)


def drop_identities(graph: Graph) -> Graph:
    """The graph without copies that keep type and shape."""
    dropped = {call for call in graph.calls if _is_identity(call)}
    replacements = {call.outputs[0]: next(iter(call.inputs.values())) for call in dropped}
    kept = [call for call in graph.calls if call not in dropped]
    return graph.with_calls(kept).substitute(replacements)


def _is_identity(call: Call) -> bool:
    if call.operator.name not in COPIES:
        return False
    source, result = next(iter(call.inputs.values())), call.outputs[0]
    return source.dtype == result.dtype and source.shape == result.shape
