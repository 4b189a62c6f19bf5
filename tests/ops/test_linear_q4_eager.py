"""The 4-bit references against the exporter's own eager operators, where those are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nybble.ops  # noqa: F401  (declares the operators)
from nybble.contract import REGISTRY, Array

torch = pytest.importorskip("torch")
pytest.importorskip("executorch.backends.vulkan.custom_ops_lib")

pytestmark = pytest.mark.export

RNG = np.random.default_rng(45)


def reference(name: str, *values: Any) -> Any:
    """The result of an operator's reference."""
    return REGISTRY[name].reference(*values)


def floats(*shape: int) -> Array:
    """Standard normal float32 values."""
    return RNG.normal(0, 1, shape).astype(np.float32)


def packed_bytes(*shape: int) -> Array:
    """Random pairs of codes."""
    return RNG.integers(0, 256, shape, dtype=np.uint8)


def scales_of(*shape: int) -> Array:
    """Random positive scales."""
    return RNG.uniform(0.01, 0.2, shape).astype(np.float32)


def beside(values: Array) -> Array:
    """Values, one ulp below and one above them in turn."""
    flat = values.reshape(-1)
    down = np.nextafter(flat, np.float32(-np.inf))
    up = np.nextafter(flat, np.float32(np.inf))
    return np.choose(np.arange(flat.size) % 3, [flat, down, up]).reshape(values.shape)


def ties(n: int, k: int, group_size: int, scale: float) -> tuple[Array, Array]:
    """Latents on half steps of random scales and one ulp beside them."""
    scales = (scale * RNG.uniform(1, 2, (-(-k // group_size), n))).astype(np.float32)
    scales *= RNG.choice(np.array([-1, 1], np.float32), scales.shape)
    each = np.repeat(scales, group_size, axis=0)[:k].T
    halves = (RNG.integers(-10, 10, (n, k)) + 0.5).astype(np.float32)
    return beside(halves * each), scales


def eager(name: str, *values: Any) -> Any:
    """The result of the exporter's operator."""
    tensors = [torch.from_numpy(v) if isinstance(v, np.ndarray) else v for v in values]
    return getattr(torch.ops.et_vk, name).default(*tensors).numpy()


def assert_near(expected: Array, found: Array, tolerance: float) -> None:
    """Agreement relative to the largest value."""
    assert expected.shape == found.shape
    assert np.abs(expected - found).max() <= tolerance * np.abs(expected).max()


@pytest.mark.parametrize("bias", [True, False])
def test_linear_q4gsw_is_the_exporters(bias: bool) -> None:
    """Several groups, with and without a bias, any leading axes."""
    values = (
        floats(2, 5, 64), packed_bytes(12, 32), scales_of(4, 12), 16, floats(12) if bias else None,
    )  # fmt: skip
    found = reference("et_vk.linear_q4gsw.default", *values)
    assert_near(eager("linear_q4gsw", *values), found, 1e-6)


def test_backward_is_the_exporters() -> None:
    """The gradient of the input."""
    values = (floats(7, 12), packed_bytes(12, 32), scales_of(4, 12), 16)
    found = reference("et_vk.linear_q4gsw_backward.default", *values)
    assert_near(eager("linear_q4gsw_backward", *values), found, 1e-6)


def test_dw_is_the_exporters() -> None:
    """The gradient of the weight, over all leading axes."""
    values = (floats(2, 7, 12), floats(2, 7, 11))
    found = reference("et_vk.linear_dW.default", *values)
    assert_near(eager("linear_dW", *values), found, 1e-6)


@pytest.mark.parametrize("columns", [32, 37, 1])
def test_requant_is_the_exporters(columns: int) -> None:
    """Ties, one ulp beside them, zero scales, odd columns: the same bytes."""
    latent, scales = ties(12, columns, 8, 0.05)
    scales[0, 3] = 0
    found = reference("et_vk.q4gsw_requant.default", latent, scales, 8)
    np.testing.assert_array_equal(eager("q4gsw_requant", latent, scales, 8), found)


@pytest.mark.parametrize("linear", [True, False])
def test_embedding_is_the_exporters(linear: bool) -> None:
    """Both packings."""
    tokens = np.array([[0, 3], [10, 7]], np.int32)
    values = (packed_bytes(11, 16), scales_of(11, 4), 8, tokens, linear)
    found = reference("et_vk.embedding_q4gsw.default", *values)
    np.testing.assert_array_equal(eager("embedding_q4gsw", *values), found)


def test_qcs4w_is_the_exporters_less_its_missing_offset() -> None:
    """The exporter's operator forgets to subtract 8, as its kernels do: that is added here."""
    x, codes, scales = floats(3, 16), packed_bytes(5, 8), scales_of(5)
    found = reference("et_vk.linear_qcs4w.default", x, codes, scales)
    offset = 8 * x.sum(axis=1, keepdims=True) * scales
    assert_near(eager("linear_qcs4w", x, codes, scales) - offset, found, 1e-5)


def test_choose_qparams_is_torchaos_on_ordinary_rows() -> None:
    """Scale and zero point of random rows of several magnitudes."""
    pytest.importorskip("torchao")
    x = (floats(205, 37) * 10.0 ** RNG.uniform(-1, 4, (205, 1))).astype(np.float32)
    arguments = ("ASYMMETRIC", (1, 37), None, -128, 127, None, None, None, False)
    scales, zeros = reference("torchao.choose_qparams_affine.default", x, *arguments)
    theirs = torch.ops.torchao.choose_qparams_affine(
        torch.from_numpy(x), "ASYMMETRIC", [1, 37], torch.int8, -128, 127
    )
    np.testing.assert_array_equal(theirs[0].numpy().reshape(-1), scales)
    np.testing.assert_array_equal(theirs[1].numpy().reshape(-1), zeros)
