"""float32 to int8 codes and back: one scale and zero point a tensor, or one a channel."""

from nybble.contract import (
    CHANNELS4,
    Array,
    Float32,
    Int8,
    Kernel,
    f32,
    i32,
    op,
    rule,
    u32,
)
from nybble.ops import arithmetic
from nybble.ops.arithmetic import scale_rule, zero_point_rule
from nybble.ops.quantize import per_channel

__all__ = ["dequantize_per_tensor", "per_channel", "quantize_per_tensor"]

_RULES = [
    scale_rule("scale"),
    zero_point_rule("zero_point"),
    rule("-128 <= quant_min <= quant_max <= 127", "the code range must lie within int8"),
]
# Channels-last words are rows of channel quads; an image's row is one of its positions.
_CHANNELS = "(x[1] if len(x) == 4 else x[len(x) - 1])"
_ROW_PARAMS = {
    "channels": u32(_CHANNELS),
    "plane": u32("x[2] * x[3] if len(x) == 4 else 1"),
    "words": u32(f"numel(x) // max(1, {_CHANNELS}) * cdiv({_CHANNELS}, 4)"),
}
_PLANE_PARAMS = {
    "channels": u32("x[1]"),
    "plane": u32("x[2] * x[3]"),
    "quads": u32("cdiv(x[1], 4)"),
    "images": u32("x[0]"),
    "blocks": u32("cdiv(x[2] * x[3], THREADS)"),
}
_PLANE_GRID = ("blocks * quads * images",)
_WIDE = "len(x) == 4 and x[2] * x[3] >= 32"
_QUANTIZE_PARAMS = {
    "inverse": f32("reciprocal(scale)"),
    "zero_point": i32("zero_point"),
    "code_min": i32("quant_min"),
    "code_max": i32("quant_max"),
}
_DEQUANTIZE_PARAMS = {"scale": f32("scale"), "zero_point": i32("zero_point")}


@op(
    "quantized_decomposed.quantize_per_tensor.default",
    out=Int8[Array, "*shape"],
    out_variants=["quantized_decomposed.quantize_per_tensor.out"],
    rules=_RULES,
    exact=True,
    kernels=[
        Kernel(
            "quantize_flat.wgsl",
            grid=("cdiv(words, THREADS * WORDS)",),
            params={"words": u32("cdiv(count, 4)"), **_QUANTIZE_PARAMS},
            constants={"THREADS": 256, "WORDS": 4},
            vectors={"x": 4},
            split=True,
            flexible=True,
        ),
        Kernel(
            "quantize_planes.wgsl",
            grid=_PLANE_GRID,
            params={**_PLANE_PARAMS, **_QUANTIZE_PARAMS},
            constants={"THREADS": 64},
            layouts={"out": CHANNELS4},
            when=_WIDE,
            flexible=True,
        ),
        Kernel(
            "quantize_rows.wgsl",
            grid=("cdiv(words, THREADS)",),
            params={**_ROW_PARAMS, **_QUANTIZE_PARAMS},
            constants={"THREADS": 64},
            layouts={"out": CHANNELS4},
            when="len(x) > 0",
            flexible=True,
        ),
    ],
)
def quantize_per_tensor(
    x: Float32[Array, "*shape"],
    scale: float,
    zero_point: int,
    quant_min: int,
    quant_max: int,
    dtype: None = None,
) -> Array:
    """int8 codes of float32 values: ``clamp(rne(x * inv(scale)) + zero_point, min, max)``.

    ``rne`` rounds half to even; ``inv`` is the reciprocal taken in double and rounded to float32.
    """
    return arithmetic.quantize(x, scale, zero_point, quant_min, quant_max)


@op(
    "quantized_decomposed.dequantize_per_tensor.default",
    out=Float32[Array, "*shape"],
    out_variants=["quantized_decomposed.dequantize_per_tensor.out"],
    rules=_RULES,
    exact=True,
    kernels=[
        Kernel(
            "dequantize_flat.wgsl",
            grid=("cdiv(words, THREADS * WORDS)",),
            params={"words": u32("cdiv(count, 4)"), **_DEQUANTIZE_PARAMS},
            constants={"THREADS": 256, "WORDS": 4},
            vectors={"out": 4},
            split=True,
            flexible=True,
        ),
        Kernel(
            "dequantize_planes.wgsl",
            grid=_PLANE_GRID,
            params={**_PLANE_PARAMS, **_DEQUANTIZE_PARAMS},
            constants={"THREADS": 64},
            layouts={"x": CHANNELS4},
            when=_WIDE,
            flexible=True,
        ),
        Kernel(
            "dequantize_rows.wgsl",
            grid=("cdiv(words, THREADS)",),
            params={**_ROW_PARAMS, **_DEQUANTIZE_PARAMS},
            constants={"THREADS": 64},
            layouts={"x": CHANNELS4},
            when="len(x) > 0",
            flexible=True,
        ),
    ],
)
def dequantize_per_tensor(
    x: Int8[Array, "*shape"],
    scale: float,
    zero_point: int,
    quant_min: int,
    quant_max: int,
    dtype: None = None,
    out_dtype: None = None,
) -> Array:
    """float32 values of int8 codes: ``f32(x - zero_point) * scale``."""
    return arithmetic.dequantize(x, scale, zero_point)
