"""The float32 arithmetic of quantization in numpy, in its written order.

Integer codes on every device equal what these functions give, bit for bit.
"""

from __future__ import annotations

import numpy as np

from nybble.contract.annotations import Array
from nybble.contract.expressions import FUNCTIONS
from nybble.contract.operator import Rule, rule

__all__ = [
    "codes_of", "dequantize", "flush_subnormals", "quantize", "reciprocal", "scale_rule",
    "zero_point_rule",
]  # fmt: skip

SMALLEST_SCALE = 2.0**-100
LARGEST_SCALE = 2.0**100


def reciprocal(scale: float) -> np.float32:
    """``inv(s)``: 1/s in double, then one rounding to float32."""
    return np.float32(FUNCTIONS["reciprocal"](scale))


def scale_rule(name: str) -> Rule:
    """A scale's range: outside it float32 products would meet subnormals, which GPUs flush."""
    return rule(
        f"{SMALLEST_SCALE!r} <= {name} <= {LARGEST_SCALE!r}",
        f"{name} must lie between 2**-100 and 2**100, where codes are exact on every device",
    )


def zero_point_rule(name: str) -> Rule:
    """A zero point is an int8 code."""
    return rule(f"-128 <= {name} <= 127", f"{name} must be an int8 code")


def flush_subnormals(values: Array) -> Array:
    """float32 values with subnormals taken as zero, which is what GPUs make of them."""
    tiny = np.finfo(np.float32).tiny
    return np.where(np.abs(values) < tiny, np.float32(0), values).astype(np.float32)


def quantize(
    values: Array, scale: float, zero_point: int, code_min: int = -128, code_max: int = 127
) -> Array:
    """``clamp(rne(v * inv(s)) + z, code_min, code_max)`` as int8; see :func:`codes_of`."""
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        scaled = values.astype(np.float32, copy=False) * reciprocal(scale)
    return codes_of(scaled, zero_point, code_min, code_max)


def codes_of(scaled: Array, zero_point: int, code_min: int = -128, code_max: int = 127) -> Array:
    """Codes of float32 values already multiplied by the reciprocal of their scale.

    The zero point is added after rounding, as an integer. Infinities saturate. A NaN, and the
    NaN of ``0 * inf``, gives the zero point's code: it stands for zero.
    """
    low, high = np.float32(code_min - zero_point), np.float32(code_max - zero_point)
    rounded = np.rint(np.clip(np.where(np.isnan(scaled), np.float32(0), scaled), low, high))
    codes = np.clip(rounded.astype(np.int32) + zero_point, code_min, code_max)
    return codes.astype(np.int8)


def dequantize(codes: Array, scale: float, zero_point: int) -> Array:
    """``f32(q - z) * f32(s)`` as float32."""
    shifted = codes.astype(np.int32) - np.int32(zero_point)
    return shifted.astype(np.float32) * np.float32(scale)
