"""Graph -> Graph, one pass a file; the order below is the whole pipeline."""

from __future__ import annotations

from collections.abc import Callable

from nybble.graph import Graph, verify_graph

from .drop_dead_calls import drop_dead_calls
from .drop_identities import drop_identities
from .fold_activation import fold_activation
from .fold_constants import fold_constants
from .fold_prepack import fold_prepack
from .fuse_code_range import fuse_code_range

__all__ = ["PIPELINE", "run_passes"]

Pass = Callable[[Graph], Graph]

PIPELINE: tuple[Pass, ...] = (
    fold_prepack,
    fold_constants,
    drop_identities,
    fold_activation,
    fuse_code_range,
    drop_dead_calls,
)


def run_passes(graph: Graph, passes: tuple[Pass, ...] = PIPELINE) -> Graph:
    """Apply passes in order, the grammar checked after each."""
    verify_graph(graph, "the program was read")
    for apply in passes:
        graph = apply(graph)
        verify_graph(graph, apply.__name__)
    return graph
