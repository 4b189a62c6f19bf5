"""What several parts' tests share: graphs drawn by hand, programs made ready, and adapters."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest

import nybble.ops  # noqa: F401  (declares the operators)
from nybble.contract import DTYPES, REGISTRY, Array, dtype_of
from nybble.graph import Graph, TensorSpec, Value, make_call, verify_graph


class Sketch:
    """Draws a graph: inputs, constants and calls, then the outputs."""

    def __init__(self) -> None:
        self.inputs: list[Value] = []
        self.calls: list[Any] = []
        self.numbers = count()

    def input(self, dtype: str, *shape: int) -> Value:
        """A new input."""
        value = Value(f"input_{len(self.inputs)}", DTYPES[dtype], shape)
        self.inputs.append(value)
        return value

    def constant(self, data: Array) -> Value:
        """A constant."""
        dtype = dtype_of(data)
        assert dtype is not None
        return Value(f"constant_{next(self.numbers)}", dtype, data.shape, data)

    def call(self, name: str, **arguments: Any) -> Value:
        """The first result of a call."""
        operator = REGISTRY[name]
        call = make_call(operator, arguments, lambda: str(next(self.numbers)), f"call {name}")
        self.calls.append(call)
        return call.outputs[0]

    def graph(self, *outputs: Value) -> Graph:
        """The graph that gives ``outputs``."""
        graph = Graph(
            "sketch",
            tuple(self.inputs),
            outputs,
            tuple(self.calls),
            tuple(TensorSpec(v.name, v.dtype.name, v.shape) for v in self.inputs),
            tuple(TensorSpec(f"output_{i}", v.dtype.name, v.shape) for i, v in enumerate(outputs)),
        )
        verify_graph(graph, "the sketch")
        return graph

    def quantize(self, x: Value, scale: float = 0.5, zero_point: int = 0, **range_: int) -> Value:
        """int8 codes of ``x``."""
        return self.call(
            "quantized_decomposed.quantize_per_tensor.default",
            x=x, scale=scale, zero_point=zero_point,
            quant_min=range_.get("quant_min", -128), quant_max=range_.get("quant_max", 127),
        )  # fmt: skip

    def dequantize(self, x: Value, scale: float = 0.5, zero_point: int = 0) -> Value:
        """float32 values of codes."""
        return self.call(
            "quantized_decomposed.dequantize_per_tensor.default",
            x=x, scale=scale, zero_point=zero_point, quant_min=-128, quant_max=127,
        )  # fmt: skip

    def convolve(self, x: Value, channels: int, **changes: Any) -> Value:
        """A pointwise int8 convolution with made-up weights, or what ``changes`` make of it."""
        kernel = changes.pop("kernel", (1, 1))
        columns = kernel[0] * kernel[1] * x.shape[1]
        rng = np.random.default_rng(channels + columns)
        weight = rng.integers(-127, 128, (channels, columns + -columns % 4)).astype(np.int8)
        arguments: dict[str, Any] = {
            "scale_in": 0.5, "zero_point_in": 0, "weight": self.constant(weight),
            "weight_sums": self.constant(np.zeros(channels, np.int32)),
            "weight_scales": self.constant(np.full(channels, 0.01, np.float32)),
            "scale_out": 0.5, "zero_point_out": 0, "bias": None, "kernel": kernel,
            "stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1,
            "activation": "none",
        }  # fmt: skip
        return self.call("et_vk.q8ta_conv2d.default", x=x, **(arguments | changes))


@pytest.fixture
def sketch() -> Sketch:
    """An empty graph to draw."""
    return Sketch()


@pytest.fixture(scope="session")
def new_sketch() -> Callable[[], Sketch]:
    """Makes empty graphs, for tests that draw one an example."""
    return Sketch
