"""An operator of the tests whose one way to run on a device is a composite."""

from collections.abc import Iterator
from typing import Any

import pytest

from nybble.contract import REGISTRY, Array, Composite, Float32, op
from nybble.graph import Graph, GraphBuilder

__all__ = ["TWICE", "declare_twice", "declared", "twice_graph"]

TWICE = "test.twice.default"


def declare_twice(expand: Any) -> None:
    """Declare the operator with the expansion of its composite."""

    @op(
        TWICE,
        out=Float32[Array, "*shape"],
        kernels=[Composite("added", expand)],
    )
    def twice(x: Float32[Array, "*shape"]) -> Array:
        """Two times x."""
        return x + x


@pytest.fixture
def declared() -> Iterator[None]:
    """Takes the operator of a test out of the registry again."""
    yield
    REGISTRY.pop(TWICE, None)


def twice_graph() -> Graph:
    """The operator on an input, and twice on its result: equal calls."""
    b = GraphBuilder("twice")
    x = b.input("x", "float32", (5, 3))
    once = b.call(TWICE, x=x)
    return b.finish([b.call(TWICE, x=once), b.call(TWICE, x=once)])
