"""Several calls in place of one, run on every device and checked as the one they stand for."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from nybble.contract import REGISTRY, Array, Composite, Emit, Float32, op
from nybble.devices import Device
from nybble.graph import Graph, GraphBuilder
from nybble.tracing import run_graph
from nybble.verify import verify_method

_RNG = np.random.default_rng(0)


def _declare(expand: Any) -> None:
    @op(
        "test.twice.default",
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
    REGISTRY.pop("test.twice.default", None)


def _twice() -> Graph:
    b = GraphBuilder("twice")
    x = b.input("x", "float32", (5, 3))
    once = b.call("test.twice.default", x=x)
    return b.finish([b.call("test.twice.default", x=once), b.call("test.twice.default", x=once)])


def _add(emit: Emit, x: Any) -> Any:
    half = emit("aten.mul.Scalar", x=x, other=0.5)
    return emit("aten.add.Tensor", x=emit("aten.mul.Scalar", x=half, other=3.0), other=half)


def _wrong(emit: Emit, x: Any) -> Any:
    return emit("aten.mul.Scalar", x=x, other=2.5)


@pytest.mark.device
@pytest.mark.usefixtures("declared")
def test_composites_run_and_verify_on_a_device(device: Device) -> None:
    """Equal calls keep results of their own, and verify compares with the call's reference."""
    _declare(_add)
    graph = _twice()
    x = _RNG.standard_normal((5, 3)).astype(np.float32)
    first, second = run_graph(device, graph, [x])

    np.testing.assert_array_equal(4 * x, first)
    np.testing.assert_array_equal(4 * x, second)
    report = verify_method(device, graph, graph, [x])
    assert report, report.summary
    assert "test.twice.default" in {check.operator for check in report.checks}


@pytest.mark.device
@pytest.mark.usefixtures("declared")
def test_verify_finds_a_composite_that_computes_something_else(device: Device) -> None:
    """Each part equals its own reference; the whole is not what the call means."""
    _declare(_wrong)
    x = np.ones((5, 3), np.float32)
    report = verify_method(device, _twice(), _twice(), [x])

    assert not report
    assert report.first_problem is not None
    assert "test.twice.default" == report.first_problem.operator
