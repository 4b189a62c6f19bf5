"""Gradients where functions have corners: the values that torch's autograd gives there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nybble.contract import Array
from nybble.devices import HostDevice, open_device
from nybble.graph import GraphBuilder
from nybble.plan import make_plan
from nybble.training.differentiate import differentiate

CORNERS = [
    ("aten.hardtanh.default", {"min_val": 0.0, "max_val": 6.0}, [0, 6, 1, -1, 7], [0, 0, 1, 0, 0]),
    ("aten.clamp.default", {"low": 0.0, "high": 6.0}, [0, 6, 1, -1, 7], [1, 1, 1, 0, 0]),
    ("aten.leaky_relu.default", {"negative_slope": 0.25}, [0, 1, -1], [0.25, 1, 0.25]),
    ("aten.hardswish.default", {}, [-3, 3], [0, 1]),
    ("aten.relu.default", {}, [0, 1], [0, 1]),
    ("aten.abs.default", {}, [0, 1, -1], [0, 1, -1]),
    ("aten.pow.Tensor_Scalar", {"exponent": 0.0}, [0, 2], [0, 0]),
    ("aten.pow.Tensor_Scalar", {"exponent": 1.0}, [0, 2], [1, 1]),
]


def slopes(device: Any, operator: str, x: list[float], **others: Any) -> list[Array]:
    """The gradient of the sum of an elementwise result with respect to each array."""
    arrays = {"x": np.array(x, np.float32)}
    arrays |= {n: np.array(v, np.float32) for n, v in others.items() if isinstance(v, list)}
    b = GraphBuilder()
    given = {name: b.input(name, "float32", array.shape) for name, array in arrays.items()}
    result = b.call(operator, **{**others, **given})
    found = differentiate(b, b.math.sum(result), list(given.values()))
    graph = b.finish([found[value] for value in given.values()])
    executable = device.prepare(make_plan(graph, device.capabilities))
    outputs: list[Array] = executable.run(list(arrays.values()))
    executable.close()
    return outputs


@pytest.mark.device
@pytest.mark.parametrize("device", ["host", "webgpu", "vulkan"])
@pytest.mark.parametrize(("operator", "attributes", "x", "expected"), CORNERS)
def test_corner_has_torchs_slope(
    device: str, operator: str, attributes: dict[str, Any], x: list[float], expected: list[float]
) -> None:
    """At a bound, at zero and on either side."""
    (found,) = slopes(open_device(device), operator, x, **attributes)
    np.testing.assert_array_equal(np.array(expected, np.float32), found)


@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_equal_operands_share_the_gradient(name: str) -> None:
    """Half for each, so that the extreme of a value and itself has slope 1."""
    sign = 1 if name == "maximum" else -1
    x, other = slopes(HostDevice(), f"aten.{name}.default", [1, sign, 0], other=[1.0, 0.0, sign])
    np.testing.assert_array_equal(np.array([0.5, 1, 0], np.float32), x)
    np.testing.assert_array_equal(np.array([0.5, 0, 1], np.float32), other)
