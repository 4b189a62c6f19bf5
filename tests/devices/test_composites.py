"""Several calls in place of one, run on every device and checked as the one they stand for."""

from typing import Any

import numpy as np
import pytest
from tests.plan.composite_operator import TWICE, declare_twice, declared, twice_graph  # noqa: F401

from nybble.contract import Emit
from nybble.devices import Device
from nybble.tracing import run_graph
from nybble.verify import verify_method

_RNG = np.random.default_rng(0)


def _add(emit: Emit, x: Any) -> Any:
    half = emit("aten.mul.Scalar", x=x, other=0.5)
    return emit("aten.add.Tensor", x=emit("aten.mul.Scalar", x=half, other=3.0), other=half)


def _wrong(emit: Emit, x: Any) -> Any:
    return emit("aten.mul.Scalar", x=x, other=2.5)


@pytest.mark.device
@pytest.mark.usefixtures("declared")
def test_composites_run_and_verify_on_a_device(device: Device) -> None:
    """Equal calls keep results of their own, and verify compares with the call's reference."""
    declare_twice(_add)
    graph = twice_graph()
    x = _RNG.standard_normal((5, 3)).astype(np.float32)
    first, second = run_graph(device, graph, [x])

    np.testing.assert_array_equal(4 * x, first)
    np.testing.assert_array_equal(4 * x, second)
    report = verify_method(device, graph, graph, [x])
    assert report, report.summary
    assert TWICE in {check.operator for check in report.checks}


@pytest.mark.device
@pytest.mark.usefixtures("declared")
def test_verify_finds_a_composite_that_computes_something_else(device: Device) -> None:
    """Each part equals its own reference; the whole is not what the call means."""
    declare_twice(_wrong)
    x = np.ones((5, 3), np.float32)
    report = verify_method(device, twice_graph(), twice_graph(), [x])

    assert not report
    assert report.first_problem is not None
    assert TWICE == report.first_problem.operator
