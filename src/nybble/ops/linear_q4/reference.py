"""The arithmetic of 4-bit weights in numpy."""

from __future__ import annotations

import numpy as np

from nybble.contract import Array
from nybble.ops.arithmetic import flush_subnormals

from .layout import codes_of_bytes

__all__ = [
    "affine_parameters", "dequantized", "product_of", "quantized_inputs", "rounded_quotient",
    "weight_codes",
]  # fmt: skip

_SMALLEST_SCALE = np.float32(6.1e-5)
_LARGEST_VALUE = np.float32(2.0**126)


def dequantized(
    weight: Array, scales: Array, group_size: int, columns: int, *, high_first: bool = False
) -> Array:
    """``(code - 8) * scales[column // group_size, row]`` as float32 ``[rows, columns]``.

    Columns beyond the last group of ``scales`` are zero.
    """
    codes = codes_of_bytes(weight, columns, high_first=high_first)
    groups = np.arange(codes.shape[1]) // group_size
    parts = max(scales.shape[0], groups.max(initial=-1) + 1)
    padded = np.zeros((parts, weight.shape[0]), np.float32)
    padded[: scales.shape[0]] = scales[:, : weight.shape[0]]
    with np.errstate(all="ignore"):
        product: Array = (codes.astype(np.float32) - np.float32(8)) * padded.T[:, groups]
    return product


def product_of(x: Array, matrix: Array) -> Array:
    """``x @ matrix.T`` in float64."""
    with np.errstate(all="ignore"):
        product: Array = np.matmul(x.astype(np.float64), matrix.T.astype(np.float64))
    return product


def rounded_quotient(values: Array, divisors: Array, low: int, high: int) -> Array:
    """``clamp(rne(values / divisors), low, high)`` as int32, the quotient in float32.

    Subnormal operands count as zero. A quotient by zero, and NaN, give 0.
    """
    divisors = flush_subnormals(divisors)
    with np.errstate(all="ignore"):
        quotient = flush_subnormals(values) / np.where(divisors == 0, np.float32(np.nan), divisors)
        rounded = np.rint(np.where(np.isnan(quotient), np.float32(0), quotient))
    return np.clip(rounded, low, high).astype(np.int32)


def quantized_inputs(x: Array, scales: Array, zero_points: Array) -> Array:
    """``clamp(rne(x / scale) + zero_point, -128, 127) - zero_point`` of each row, as float32."""
    zero = zero_points.reshape(*x.shape[:-1], 1).astype(np.int32)
    scale = scales.reshape(*x.shape[:-1], 1)
    codes = np.clip(rounded_quotient(x, scale, -256, 256) + zero, -128, 127)
    return (codes - zero).astype(np.float32)


def weight_codes(latent: Array, scales: Array, group_size: int) -> Array:
    """The flat form, uint8 ``[n, ceil(k / 2)]``, of float32 ``latent`` ``[n, k]``."""
    rows, columns = latent.shape
    each = scales[:, :rows].T[:, np.arange(columns) // group_size]
    codes = np.zeros((rows, columns + columns % 2), np.uint8)
    codes[:, :columns] = rounded_quotient(latent, each, -8, 7) + 8
    packed: Array = codes[:, 0::2] | (codes[:, 1::2] << 4)
    return packed


def affine_parameters(x: Array, code_min: int, code_max: int) -> tuple[Array, Array]:
    """Scales (float32) and zero points (int8) of the rows of ``x``, in float32 throughout."""
    counted = flush_subnormals(np.where(np.isnan(x), np.float32(0), x))
    counted = np.clip(counted, -_LARGEST_VALUE, _LARGEST_VALUE)
    least = np.minimum(counted.min(axis=-1, initial=0), np.float32(0))
    most = np.maximum(counted.max(axis=-1, initial=0), np.float32(0))
    extent = np.float32(code_max - code_min)
    scale = flush_subnormals((most - least) / extent)
    scale = np.where(scale == 0, np.float32(0.1), scale)
    small = scale < _SMALLEST_SCALE
    factor = np.where(small, _SMALLEST_SCALE / scale, np.float32(1))
    reach = _SMALLEST_SCALE * extent
    a = np.where(small & (most == 0), -reach, least * factor)
    b = np.where(small & (least == 0), reach, most * factor)
    a = np.where(small & (least == 0), np.float32(0), a)
    scale = np.where(small, _SMALLEST_SCALE, scale).astype(np.float32)
    below, above = flush_subnormals(-a / scale), flush_subnormals(b / scale)
    lowest, highest = np.float32(code_min), np.float32(code_max)
    from_least = abs(lowest) - below < abs(highest) - above
    codes = np.where(from_least, lowest + below, highest - above)
    return scale, np.rint(np.clip(codes, lowest, highest)).astype(np.int8)
