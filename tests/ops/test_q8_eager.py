"""The int8 references against the exporter's own eager operators, where those are right."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import nybble.ops  # noqa: F401  (declares the operators)
from nybble.contract import REGISTRY

torch = pytest.importorskip("torch")
pytest.importorskip("executorch.backends.vulkan.custom_ops_lib")

pytestmark = pytest.mark.export

RNG = np.random.default_rng(77)


def eager(name: str, values: list[Any]) -> Any:
    """The result of the exporter's operator."""
    converted = [
        torch.from_numpy(v) if isinstance(v, np.ndarray)
        else list(v) if isinstance(v, tuple) else v
        for v in values
    ]  # fmt: skip
    return getattr(torch.ops.et_vk, name).default(*converted).numpy()


def agree(name: str, values: list[Any]) -> None:
    """Assert that the reference's codes are the exporter's."""
    ours = REGISTRY[f"et_vk.{name}.default"].reference(*values)
    assert len(np.unique(ours)) > 10
    assert np.array_equal(eager(name, values), ours)


def codes(*shape: int) -> Any:
    """Random codes over the whole range."""
    return RNG.integers(-128, 128, shape, dtype=np.int8)


def stage(oc: int, products: int, zero_point_in: int) -> tuple[list[Any], list[Any]]:
    """What stands before and after the weight, up to the bias."""
    scales = RNG.uniform(0.002, 0.01, oc).astype(np.float32)
    spread = 0.6 * products**0.5
    bias = RNG.normal(0, spread, oc).astype(np.float32)
    return [0.017, zero_point_in], [scales, 0.02 * spread, -9, bias]


@pytest.mark.parametrize(
    ("kind", "activation", "zero_point"),
    list(itertools.product(["linear", "linear_gemv"], ["none", "relu"], [-128, 3, 127])),
)
def test_linear_codes_are_the_exporters(kind: str, activation: str, zero_point: int) -> None:
    """et_vk.q8ta_linear on random full-range data, both names and activations."""
    rows = 1 if kind == "linear_gemv" else 37
    before, after = stage(36, 64, zero_point)
    weight = codes(36, 64)
    sums = weight.sum(1, dtype=np.int32)
    agree(f"q8ta_{kind}", [codes(rows, 64), *before, weight, sums, *after, activation])


@pytest.mark.parametrize("activation", ["none", "relu"])
def test_pointwise_codes_are_the_exporters(activation: str) -> None:
    """et_vk.q8ta_conv2d_pw on random full-range data."""
    before, after = stage(12, 20, 31)
    weight = codes(12, 20)
    geometry = [(1, 1), (1, 1), (0, 0), (1, 1), 1, activation]
    values = [codes(2, 20, 5, 7), *before, weight, weight.sum(1, dtype=np.int32), *after]
    agree("q8ta_conv2d_pw", [*values, *geometry])


@pytest.mark.parametrize(("stride", "padding", "activation"), [(1, 1, "none"), (2, 0, "relu")])
def test_one_channel_convolution_codes_are_the_exporters(
    stride: int, padding: int, activation: str
) -> None:
    """et_vk.q8ta_conv2d where its eager form reads the columns as the runtime does."""
    before, after = stage(8, 9, -20)
    weight = np.pad(codes(8, 9), ((0, 0), (0, 3)))
    geometry = [(3, 3), (stride,) * 2, (padding,) * 2, (1, 1), 1, activation]
    values = [codes(2, 1, 9, 11), *before, weight, weight.sum(1, dtype=np.int32), *after]
    agree("q8ta_conv2d", [*values, *geometry])


@pytest.mark.parametrize(("stride", "padding", "activation"), [(1, 1, "none"), (2, 2, "relu")])
def test_depthwise_codes_are_the_exporters(stride: int, padding: int, activation: str) -> None:
    """et_vk.q8ta_conv2d_dw on random full-range data."""
    before, after = stage(8, 9, 50)
    weight = codes(3, 3, 8)
    geometry = [(3, 3), (stride,) * 2, (padding,) * 2, (1, 1), 8, activation]
    sums = weight.sum((0, 1), dtype=np.int32)
    agree("q8ta_conv2d_dw", [codes(2, 8, 9, 11), *before, weight, sums, *after, *geometry])


def test_transposed_pointwise_codes_are_the_exporters() -> None:
    """et_vk.q8ta_conv2d_transposed with 1x1 filters and stride 2."""
    before, after = stage(8, 12, 7)
    weight = codes(8, 12)
    geometry = [(1, 1), (2, 2), (0, 0), (1, 1), (1, 1), 1, "none"]
    values = [codes(1, 12, 5, 7), *before, weight, weight.sum(1, dtype=np.int32), *after]
    agree("q8ta_conv2d_transposed", [*values, *geometry])


@pytest.mark.parametrize("alpha", [1.0, -1.0, 2.0, 0.3])
def test_add_codes_are_the_exporters(alpha: float) -> None:
    """et_vk.q8ta_add over pairs of all codes."""
    a, b = np.meshgrid(np.arange(-128, 128), np.arange(-128, 128))
    values = [a.astype(np.int8), b.astype(np.int8), 0.031, 5, 0.017, -77, 0.043, 3, alpha]
    agree("q8ta_add", values)


@pytest.mark.parametrize("scale", [0.031, 0.5, 2.0])
def test_relu_codes_are_the_exporters(scale: float) -> None:
    """et_vk.q8ta_relu over all codes."""
    agree("q8ta_relu", [np.arange(-128, 128).astype(np.int8), scale, -100, scale * 1.3, -11])


def test_pixel_shuffle_codes_are_the_exporters() -> None:
    """et_vk.q8ta_pixel_shuffle with another scale and zero point."""
    agree("q8ta_pixel_shuffle", [codes(2, 18, 5, 3), 0.031, 5, float(np.float32(1 / 0.04)), 9, 3])


@pytest.mark.parametrize("scale", [0.1, 1 / 255, 0.08486247607553321])
def test_a_scale_that_is_no_float32_keeps_its_double_for_the_reciprocal(scale: float) -> None:
    """Codes of values beside rounding ties, where rounding the scale first gives the other code."""
    x = ((np.arange(-400, 400) + 0.5) * scale).astype(np.float32)
    expected = torch.ops.quantized_decomposed.quantize_per_tensor.default(
        torch.from_numpy(x), scale, 3, -128, 127, torch.int8
    )
    ours = REGISTRY["quantized_decomposed.quantize_per_tensor.default"].reference(
        x, scale, 3, -128, 127
    )
    assert np.array_equal(expected.numpy(), ours)
