"""Drops prepack calls.

does            replaces the result of ``et_vk.prepack`` by its constant
needs           nothing
does not handle a result that is written later (mutable state), which building refuses
before -> after w2 = prepack(w); y = f(x, w2)  ->  y = f(x, w)
"""

from __future__ import annotations

from nybble.graph import Graph, Value

__all__ = ["fold_prepack"]

PREPACK = "et_vk.prepack.default"


def fold_prepack(graph: Graph) -> Graph:
    """The graph without prepack calls."""
    replacements: dict[Value, Value] = {
        call.outputs[0]: next(iter(call.inputs.values()))
        for call in graph.calls
        if call.operator.name == PREPACK
    }
    kept = [call for call in graph.calls if call.operator.name != PREPACK]
    return graph.with_calls(kept).substitute(replacements)
