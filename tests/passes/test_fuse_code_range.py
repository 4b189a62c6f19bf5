"""fuse_code_range is claimed exact: the same codes, with fewer calls."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nybble.contract import Array
from nybble.devices import HostDevice
from nybble.graph import Graph, format_graph
from nybble.passes import run_passes
from nybble.passes.fold_activation import fold_activation
from nybble.passes.fuse_code_range import fuse_code_range
from nybble.plan import make_plan

SCALES = st.one_of(
    st.sampled_from([2.0**-100, 2.0**100, 1e-9, 1e9, 0.1, 1 / 3, 6 / 255, 0.023529412224888802]),
    st.floats(2.0**-100, 2.0**100, width=32),
    st.floats(2.0**-13, 10.0, width=32),
    st.floats(1e-4, 10.0),
)
CODES = st.one_of(st.sampled_from([-128, -127, -1, 0, 1, 126, 127]), st.integers(-128, 127))
BOUNDS = st.one_of(
    st.none(),
    st.sampled_from([-math.inf, math.inf, math.nan, 0.0, -0.0, 6.0, 1e300, -1e300, 1e-45]),
    st.floats(-10, 10),
    st.floats(width=32),
)


def run(graph: Graph, *inputs: Array) -> list[Array]:
    """The graph's outputs on the host."""
    host = HostDevice()
    with np.errstate(all="ignore"):
        return host.prepare(make_plan(graph, host.capabilities)).run(list(inputs))


def calls(graph: Graph) -> list[str]:
    """The operators of a graph, without namespace and overload."""
    return [call.operator.name.split(".")[1] for call in graph.calls]


def every_code(sketch: Any, scale: float, zero_point: int, **range_: int) -> tuple[Any, Array]:
    """A producer that gives every code of int8, and what feeds it."""
    x = sketch.input("float32", 2, 2, 8, 12)
    values = (np.arange(384) - 192.0 - zero_point) * np.float64(np.float32(scale))
    fed = np.clip(values, -3e38, 3e38).astype(np.float32).reshape(2, 2, 8, 12)
    return sketch.quantize(x, scale, zero_point, **range_), fed


def test_quantized_relu6_becomes_a_code_range(sketch: Any) -> None:
    """The chain that a quantized MobileNetV2 has after each convolution is one call."""
    codes = sketch.convolve(
        sketch.input("int8", 1, 3, 2, 2), 5, scale_out=0.05, zero_point_out=-128
    )
    clamped = sketch.call(
        "aten.hardtanh.default", x=sketch.dequantize(codes, 0.05, -128), min_val=0.0, max_val=6.0
    )
    before = sketch.graph(sketch.quantize(clamped, 0.05, -128))
    after = fuse_code_range(before)
    assert ["q8ta_conv2d", "dequantize_per_tensor", "hardtanh", "quantize_per_tensor"] == calls(
        before
    )
    assert ["q8ta_conv2d"] == calls(after)
    printed = format_graph(after)
    assert "code_min" not in printed  # 0 has the code -128, the range's own end
    assert "code_max=-8" in printed  # 6 / 0.05 - 128


@settings(max_examples=300, deadline=None)
@given(
    SCALES, CODES, BOUNDS, BOUNDS, st.sampled_from(["hardtanh", "clamp", "relu", "nothing"]),
    st.tuples(CODES, CODES).map(sorted), st.tuples(CODES, CODES).map(sorted),
)  # fmt: skip
def test_fusing_changes_no_code(
    new_sketch: Any,
    scale: float,
    zero_point: int,
    low: float | None,
    high: float | None,
    clamp: str,
    have: list[int],
    want: list[int],
) -> None:
    """For any scale, zero point, bounds and code ranges, every code stays what it was."""
    sketch = new_sketch()
    codes, fed = every_code(sketch, scale, zero_point, quant_min=have[0], quant_max=have[1])
    value = sketch.dequantize(codes, scale, zero_point)
    if clamp == "hardtanh":
        value = sketch.call(
            "aten.hardtanh.default",
            x=value, min_val=-1.0 if low is None else low, max_val=1.0 if high is None else high,
        )  # fmt: skip
    elif clamp == "clamp":
        value = sketch.call("aten.clamp.default", x=value, low=low, high=high)
    elif clamp == "relu":
        value = sketch.call("aten.relu.default", x=value)
    out = sketch.quantize(value, scale, zero_point, quant_min=want[0], quant_max=want[1])
    before = sketch.graph(out)
    after = fuse_code_range(before)
    assert ["quantize_per_tensor"] == calls(after)
    np.testing.assert_array_equal(run(before, fed)[0], run(after, fed)[0], strict=True)


@settings(max_examples=150, deadline=None)
@given(SCALES, CODES, SCALES, CODES, st.tuples(CODES, CODES).map(sorted), st.integers(0, 2**32 - 1))
def test_folding_relu_changes_no_code(
    new_sketch: Any,
    scale_out: float,
    zero_point_out: int,
    scale_in: float,
    zero_point_in: int,
    codes: list[int],
    seed: int,
) -> None:
    """A fused relu equals a lower bound on codes, whatever range there was."""
    sketch = new_sketch()
    x = sketch.input("int8", 1, 3, 4, 4)
    rng = np.random.default_rng(seed)
    out = sketch.convolve(
        x, 4, scale_in=scale_in, zero_point_in=zero_point_in, scale_out=scale_out,
        zero_point_out=zero_point_out, activation="relu", code_min=codes[0], code_max=codes[1],
        weight_scales=sketch.constant(
            np.array([1e-3, np.nan, np.inf, min(scale_out / scale_in / 300, 1e38)], np.float32)
        ),
    )  # fmt: skip
    before = sketch.graph(out)
    after = fold_activation(before)
    assert "none" == after.calls[0].arguments["activation"]
    fed = rng.integers(-128, 128, (1, 3, 4, 4)).astype(np.int8)
    np.testing.assert_array_equal(run(before, fed)[0], run(after, fed)[0], strict=True)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whole_pipeline_changes_no_code(new_sketch: Any, data: st.DataObject) -> None:
    """Convolution with relu, relu6 between equal parameters, add: all passes keep every code."""
    sketch = new_sketch()
    scale, zero = data.draw(SCALES.filter(lambda s: 1e-8 < s < 1e8)), data.draw(CODES)
    x = sketch.input("int8", 1, 3, 3, 3)
    one = sketch.convolve(
        x, 5, scale_out=scale, zero_point_out=zero, activation="relu",
        weight_scales=sketch.constant(np.full(5, scale / 200, np.float32)),
    )  # fmt: skip
    top = data.draw(st.sampled_from([6.0, 6.0 * scale, 100.4999 * scale, 0.5 * scale]))
    clamped = sketch.call(
        "aten.hardtanh.default", x=sketch.dequantize(one, scale, zero), min_val=0.0, max_val=top
    )
    two = sketch.quantize(clamped, scale, zero)
    three = sketch.call(
        "et_vk.q8ta_add.default", a=two, b=two, scale_a=scale, zero_point_a=zero, scale_b=scale,
        zero_point_b=zero, scale_out=scale, zero_point_out=zero, alpha=1.0,
    )  # fmt: skip
    before = sketch.graph(sketch.dequantize(three, scale, zero), two)
    after = run_passes(before)
    assert ["q8ta_conv2d", "q8ta_add", "dequantize_per_tensor"] == calls(after)
    fed = np.random.default_rng(data.draw(st.integers(0, 999))).integers(-128, 128, (1, 3, 3, 3))
    for expected, got in zip(
        run(before, fed.astype(np.int8)), run(after, fed.astype(np.int8)), strict=True
    ):
        np.testing.assert_array_equal(expected, got, strict=True)


@pytest.mark.parametrize(
    "case", ["scale", "zero point", "codes read", "values read", "clamped read", "codes returned",
             "values returned", "other operator", "graph input"],
)  # fmt: skip
def test_chain_that_means_something_else_stays(sketch: Any, case: str) -> None:
    """Other parameters, or a value that something else reads, and nothing is fused."""
    x = sketch.input("int8", 1, 3, 2, 2)
    codes = x if case == "graph input" else sketch.convolve(x, 4)
    values = sketch.dequantize(codes)
    bounded = (
        sketch.call("aten.neg.default", x=values)
        if case == "other operator"
        else sketch.call("aten.relu.default", x=values)
    )
    outputs = [
        sketch.quantize(bounded, 0.25 if case == "scale" else 0.5, 1 if case == "zero point" else 0)
    ]
    if case == "codes read":
        outputs.append(sketch.dequantize(codes, 1.0))
    if case == "values read":
        outputs.append(sketch.call("aten.neg.default", x=values))
    if case == "clamped read":
        outputs.append(sketch.call("aten.neg.default", x=bounded))
    outputs += [codes] if case == "codes returned" else []
    outputs += [values] if case == "values returned" else []
    graph = sketch.graph(*outputs)
    assert calls(graph) == calls(fuse_code_range(graph))


@pytest.mark.parametrize("bounds", [(math.nan, 1.0), (-1.0, math.nan), (2.0, 1.0), (-1e300, 1e300)])
def test_strange_bounds_change_no_code(sketch: Any, bounds: tuple[float, float]) -> None:
    """A bound that is NaN bounds nothing, crossed ones give the upper, huge ones are infinite."""
    codes, fed = every_code(sketch, 0.25, 5)
    values = sketch.dequantize(codes, 0.25, 5)
    clamped = sketch.call("aten.clamp.default", x=values, low=bounds[0], high=bounds[1])
    before = sketch.graph(sketch.quantize(clamped, 0.25, 5))
    after = fuse_code_range(before)
    assert ["quantize_per_tensor"] == calls(after)
    np.testing.assert_array_equal(run(before, fed)[0], run(after, fed)[0], strict=True)


def test_chains_after_chains_fuse_too(sketch: Any) -> None:
    """Fusing repeats: what fused is a producer for the next chain."""
    codes = sketch.convolve(sketch.input("int8", 1, 3, 2, 2), 4)
    for low, high in ((0.0, 20.0), (-5.0, 6.0), (1.0, 100.0)):
        bounded = sketch.call(
            "aten.hardtanh.default", x=sketch.dequantize(codes), min_val=low, max_val=high
        )
        codes = sketch.quantize(bounded)
    after = fuse_code_range(sketch.graph(codes))
    assert ["q8ta_conv2d"] == calls(after)
    assert (2, 12) == tuple(after.calls[0].arguments[n] for n in ("code_min", "code_max"))
