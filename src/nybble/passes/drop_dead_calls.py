"""Drops calls whose results nobody reads.

does            removes calls none of whose results reach an output
needs           nothing
does not handle calls with effects; there are none
before -> after y = f(x); z = g(x); return z  ->  z = g(x); return z
"""

from __future__ import annotations

from nybble.graph import Call, Graph

__all__ = ["drop_dead_calls"]


def drop_dead_calls(graph: Graph) -> Graph:
    """The graph with only the calls that its outputs need."""
    needed = set(graph.results)
    kept: list[Call] = []
    for call in reversed(graph.calls):
        if needed.intersection(call.outputs):
            kept.append(call)
            needed.update(call.inputs.values())
    return graph.with_calls(kept[::-1])
