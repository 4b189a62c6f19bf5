"""Elementwise operators and rearrangements from int8 codes to int8 codes."""

import numpy as np

from nybble.contract import CHANNELS4, Array, Int8, Kernel, f32, i32, op, rule, u32
from nybble.contract.strides import broadcast_shape
from nybble.ops.arithmetic import (
    codes_of,
    dequantize,
    flush_subnormals,
    quantize,
    scale_rule,
    zero_point_rule,
)
from nybble.ops.strided import axis_params

_CODE_RANGE = rule("-128 <= code_min <= code_max <= 127", "the code range must lie within int8")
_RESULT_PARAMS = {
    "zero_point_out": i32("zero_point_out"),
    "code_min": i32("code_min"),
    "code_max": i32("code_max"),
}
_INPUT_PARAMS = {"scale_in": f32("scale_in"), "zero_point_in": i32("zero_point_in")}
_FLAT_WORDS = "cdiv(count, 4)"


def _quad_words(tensor: str) -> str:
    """The number of words of a tensor in rows of channel quads."""
    channels = f"({tensor}[1] if len({tensor}) == 4 else {tensor}[len({tensor}) - 1])"
    return f"count // max(1, {channels}) * cdiv({channels}, 4)"


_ADD_PARAMS = {
    "scale_a": f32("scale_a"),
    "zero_point_a": i32("zero_point_a"),
    "scale_b": f32("scale_b"),
    "zero_point_b": i32("zero_point_b"),
    "alpha": f32("alpha if abs(alpha) >= 2.0**-126 else 0.0"),
    "inverse": f32("reciprocal(scale_out)"),
    **_RESULT_PARAMS,
}


@op(
    "et_vk.q8ta_add.default",
    out=Int8[Array, "..."],
    shape=lambda a, b, **_: broadcast_shape(a, b),
    derived={"axes": "broadcast_axes(a, b)"},
    rules=(
        *(scale_rule(name) for name in ("scale_a", "scale_b", "scale_out")),
        *(zero_point_rule(f"zero_point_{name}") for name in ("a", "b", "out")),
        _CODE_RANGE,
    ),
    operations="5 * count",
    exact=True,
    kernels=[
        *(
            Kernel(
                "add.wgsl",
                grid=("cdiv(words, THREADS)",),
                params={"words": u32(words), **_ADD_PARAMS},
                constants={"THREADS": 64},
                layouts=layouts,
                flexible=True,
                when=when,
                split=split,
            )
            for words, layouts, when, split in (
                (
                    _quad_words("a"),
                    dict.fromkeys(("a", "b", "out"), CHANNELS4),
                    "a == b and len(a) > 0",
                    False,
                ),
                (_FLAT_WORDS, {}, "a == b", True),
            )
        ),
        Kernel(
            "add_broadcast.wgsl",
            grid=("cdiv(words, THREADS)",),
            params={
                "words": u32(_FLAT_WORDS),
                "elements": u32("count"),
                **axis_params("axes", "size", ["a_stride", "b_stride"]),
                **_ADD_PARAMS,
            },
            constants={"THREADS": 64, "AXES": "len(axes)"},
            flexible=True,
        ),
    ],
)
def q8ta_add(
    a: Int8[Array, "..."],
    b: Int8[Array, "..."],
    scale_a: float,
    zero_point_a: int,
    scale_b: float,
    zero_point_b: int,
    scale_out: float,
    zero_point_out: int,
    alpha: float,
    *,
    code_min: int = -128,
    code_max: int = 127,
) -> Array:
    """Codes of ``a + alpha * b``; shapes broadcast.

    In float32: ``v = D(a) + alpha * D(b)`` with ``D(q) = f32(q - zero_point) * scale``, then
    ``clamp(rne(v * inv(scale_out)) + zero_point_out, code_min, code_max)``.
    A NaN gives ``zero_point_out``; infinities saturate.
    """
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        factor = flush_subnormals(np.array(alpha, np.float32))
        product = dequantize(b, scale_b, zero_point_b) * factor
        values = dequantize(a, scale_a, zero_point_a) + product
    return quantize(values, scale_out, zero_point_out, code_min, code_max)


@op(
    "et_vk.q8ta_relu.default",
    out=Int8[Array, "*shape"],
    rules=(
        scale_rule("scale_in"),
        scale_rule("scale_out"),
        zero_point_rule("zero_point_in"),
        zero_point_rule("zero_point_out"),
        _CODE_RANGE,
    ),
    operations="3 * count",
    exact=True,
    kernels=[
        Kernel(
            "relu.wgsl",
            grid=("cdiv(words, THREADS)",),
            params={
                "words": u32(words),
                **_INPUT_PARAMS,
                "inverse": f32("reciprocal(scale_out)"),
                **_RESULT_PARAMS,
            },
            constants={"THREADS": 64},
            layouts=layouts,
            flexible=True,
            when=when,
            split=split,
        )
        for words, layouts, when, split in (
            (_quad_words("x"), dict.fromkeys(("x", "out"), CHANNELS4), "len(x) > 0", False),
            (_FLAT_WORDS, {}, "True", True),
        )
    ],
)
def q8ta_relu(
    x: Int8[Array, "*shape"],
    scale_in: float,
    zero_point_in: int,
    scale_out: float,
    zero_point_out: int,
    *,
    code_min: int = -128,
    code_max: int = 127,
) -> Array:
    """Codes of ``max(f32(x - zero_point_in) * scale_in, 0)`` at another scale and zero point.

    The result is ``clamp(rne(v * inv(scale_out)) + zero_point_out, code_min, code_max)``.
    """
    values = np.maximum(dequantize(x, scale_in, zero_point_in), np.float32(0))
    return quantize(values, scale_out, zero_point_out, code_min, code_max)


@op(
    "et_vk.q8ta_pixel_shuffle.default",
    out=Int8[Array, "*batch oc h_out w_out"],
    derived={
        "oc": "c // (factor * factor)",
        "h_out": "h * factor",
        "w_out": "w * factor",
    },
    rules=(
        rule("factor >= 1", "the upscale factor must be at least 1"),
        rule("c % (factor * factor) == 0", "channels must be a multiple of the factor's square"),
        scale_rule("scale_in"),
        scale_rule("inverse_scale_out"),
        zero_point_rule("zero_point_in"),
        zero_point_rule("zero_point_out"),
        _CODE_RANGE,
    ),
    operations="3 * count",
    exact=True,
    kernels=[
        Kernel(
            shader,
            grid=("cdiv(words, THREADS)",),
            params={
                "words": u32(words),
                "channels": u32("oc"),
                "height": u32("h_out"),
                "width": u32("w_out"),
                **_INPUT_PARAMS,
                "inverse": f32("inverse_scale_out"),
                **_RESULT_PARAMS,
            },
            constants={"THREADS": 64, "FACTOR": "factor"},
            layouts=layouts,
            flexible=True,
            when=when,
        )
        for shader, words, layouts, when in (
            (
                "pixel_shuffle_quads.wgsl",
                "count // max(1, oc) * cdiv(oc, 4)",
                dict.fromkeys(("x", "out"), CHANNELS4),
                "len(x) == 4",
            ),
            ("pixel_shuffle_flat.wgsl", _FLAT_WORDS, {}, "True"),
        )
    ],
)
def q8ta_pixel_shuffle(
    x: Int8[Array, "*batch c h w"],
    scale_in: float,
    zero_point_in: int,
    inverse_scale_out: float,
    zero_point_out: int,
    factor: int,
    *,
    code_min: int = -128,
    code_max: int = 127,
) -> Array:
    """Moves channels into space: ``out[c, h, w]`` is pixel ``(h // r, w // r)`` of channel
    ``c * r * r + (h % r) * r + w % r``, with ``r`` the factor, at another scale and zero point.

    The code is ``clamp(rne(f32(x - zero_point_in) * scale_in * inverse_scale_out)
    + zero_point_out, code_min, code_max)``; the program stores the reciprocal of the scale.
    """
    *batch, channels, height, width = x.shape
    planes = x.reshape(*batch, channels // factor**2, factor, factor, height, width)
    lead = len(batch)
    order = (*range(lead + 1), *(lead + axis for axis in (3, 1, 4, 2)))
    shuffled = planes.transpose(order).reshape(
        *batch, channels // factor**2, height * factor, width * factor
    )
    scaled = dequantize(shuffled, scale_in, zero_point_in) * np.float32(inverse_scale_out)
    return codes_of(scaled, zero_point_out, code_min, code_max)
