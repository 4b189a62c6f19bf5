"""int8 codes with one scale and zero point a channel: mostly weights, folded at load."""

import numpy as np

from nybble.contract import (
    Array,
    Float32,
    Int8,
    Int32,
    Kernel,
    constant_layout,
    i32,
    op,
    rule,
    u32,
)
from nybble.contract.annotations import Real
from nybble.ops.arithmetic import flush_subnormals

_RULES = [
    rule("0 <= axis < len(x)", "the axis must be one of the tensor"),
    rule("scales[0] == x[axis]", "there must be one scale a channel"),
    rule(
        "zero_points is None or zero_points[0] == x[axis]", "there must be one zero point a channel"
    ),
    rule("-128 <= quant_min <= quant_max <= 127", "the code range must lie within int8"),
]
_PARAMS = {
    "words": u32("cdiv(count, 4)"),
    "elements": u32("count"),
    "channels": u32("x[axis]"),
    "inner": u32("stride_of(x, axis)"),
}


def _reciprocals(scales: Array) -> Array:
    with np.errstate(divide="ignore"):
        return (1.0 / flush_subnormals(scales).astype(np.float64)).astype(np.float32)


RECIPROCALS = constant_layout("reciprocals", lambda scales, names: _reciprocals(scales))
"""1/scale, taken in double and rounded once: a shader's division may err by 2.5 ulp."""


def _aligned(values: Array, rank: int, axis: int) -> Array:
    return values.reshape([-1 if i == axis else 1 for i in range(rank)])


@op(
    "quantized_decomposed.quantize_per_channel.default",
    out=Int8[Array, "*shape"],
    rules=_RULES,
    exact=True,
    kernels=[
        Kernel(
            "quantize_channels.wgsl",
            grid=("cdiv(words, THREADS)",),
            params={**_PARAMS, "code_min": i32("quant_min"), "code_max": i32("quant_max")},
            constants={"THREADS": 64},
            layouts={"scales": RECIPROCALS},
        )
    ],
)
def quantize_per_channel(
    x: Float32[Array, "*shape"],
    scales: Float32[Array, "channels"],
    zero_points: Int32[Array, "channels"] | None,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: None = None,
) -> Array:
    """int8 codes: ``clamp(rne(x * f32(1 / scale_c)) + zero_point_c, min, max)``.

    The reciprocal is taken in double and rounded to float32; NaN has the zero point's code. The sum
    is that of integers, for any zero point.
    """
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        scaled = x * _aligned(_reciprocals(scales), x.ndim, axis)
    points = np.zeros(scales.shape, np.int32) if zero_points is None else zero_points
    shift = _aligned(points.astype(np.float64), x.ndim, axis)
    # In double, where both terms and their sum are exact: a zero point may be any int32.
    rounded = np.rint(np.where(np.isnan(scaled), 0, scaled).astype(np.float64))
    return np.clip(rounded + shift, quant_min, quant_max).astype(np.int8)


@op(
    "quantized_decomposed.dequantize_per_channel.default",
    out=Float32[Array, "*shape"],
    rules=_RULES,
    exact=True,
    kernels=[
        Kernel(
            "dequantize_channels.wgsl",
            grid=("cdiv(words, THREADS)",),
            params=_PARAMS,
            constants={"THREADS": 64},
        )
    ],
)
def dequantize_per_channel(
    x: Int8[Array, "*shape"],
    scales: Float32[Array, "channels"],
    zero_points: Real[Array, "channels"] | None,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: None = None,
    out_dtype: None = None,
) -> Array:
    """float32 values: ``(f32(x) - f32(zero_point_c)) * scale_c``."""
    points = np.float32(0) if zero_points is None else _aligned(zero_points, x.ndim, axis)
    shifted = x.astype(np.float32) - np.asarray(points).astype(np.float32)
    return shifted * _aligned(flush_subnormals(scales), x.ndim, axis)
