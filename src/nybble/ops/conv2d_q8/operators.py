"""int8 convolutions: plain, pointwise, depthwise and transposed."""

from typing import Literal

from nybble.contract import Array, Float32, Int8, Int32, op, rule
from nybble.ops.output_stage import (
    LONGEST_SUM,
    code_rules,
    output_codes,
    output_values,
    vector_rules,
)

from .kernels import CONVOLUTION, DEPTHWISE, POINTWISE, TRANSPOSED
from .reference import convolution_sums, filters_of, transposed_convolution_sums

_GEOMETRY = (
    rule(
        "len(kernel) == len(stride) == len(padding) == len(dilation) == 2",
        "kernel, stride, padding and dilation need two entries each: height and width",
    ),
    rule(
        "min(min(kernel), min(stride), min(dilation)) >= 1",
        "kernel, stride and dilation must be at least 1",
    ),
    rule("min(padding) >= 0", "padding must not be negative"),
    rule("groups >= 1 and ic % groups == 0 and oc % groups == 0", "groups must divide channels"),
    rule(
        f"kernel[0] * kernel[1] * (ic // groups) <= {LONGEST_SUM}",
        f"a filter may have at most {LONGEST_SUM} weights, else its sum overflows 32 bits",
    ),
)
_FITS = rule(
    "dilation[0] * (kernel[0] - 1) < h + 2 * padding[0] "
    "and dilation[1] * (kernel[1] - 1) < w + 2 * padding[1]",
    "the kernel must not exceed the padded input",
)
_COLUMNS = rule(
    "columns >= kernel[0] * kernel[1] * (ic // groups)",
    "each row of weight needs one column a tap and input channel of its group",
)
_STAGE = (*code_rules(), *vector_rules("oc"))
_CONVOLVED = {
    "h_out": "conv_out(h, kernel[0], stride[0], padding[0], dilation[0])",
    "w_out": "conv_out(w, kernel[1], stride[1], padding[1], dilation[1])",
}
_IMAGE = Int8[Array, "n oc h_out w_out"]
_OPERATIONS = "2 * n * oc * h_out * w_out * kernel[0] * kernel[1] * (ic // groups)"


@op(
    "et_vk.q8ta_conv2d.default",
    out=_IMAGE,
    derived=_CONVOLVED,
    rules=(*_GEOMETRY, _FITS, _COLUMNS, *_STAGE),
    kernels=CONVOLUTION,
    operations=_OPERATIONS,
    exact=True,
)
def q8ta_conv2d(
    x: Int8[Array, "n ic h w"],
    scale_in: float,
    zero_point_in: int,
    weight: Int8[Array, "oc columns"],
    weight_sums: Int32[Array, "sum_count"],
    weight_scales: Float32[Array, "scale_count"],
    scale_out: float,
    zero_point_out: int,
    bias: Float32[Array, "bias_count"] | None,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    activation: Literal["none", "relu"],
    *,
    code_min: int = -128,
    code_max: int = 127,
) -> Array:
    """2-D convolution of int8 codes with one weight scale an output channel.

    Column ``(i * kw + j) * icg + c`` of ``weight`` is tap ``(i, j)`` of the group's channel ``c``;
    further columns are ignored, as is ``weight_sums``: sums are exact without it. Padding stands
    for the value zero. With the integer sum of ``(x - zero_point_in) * w``, the value is
    ``f32(sum) * scale_in * weight_scales[oc] + bias[oc]``, then ``max(value, 0)`` for "relu";
    the result is ``clamp(rne(value * inv(scale_out)) + zero_point_out, code_min, code_max)``.
    A NaN value gives ``zero_point_out``; infinities saturate.
    """
    filters = filters_of(weight, kernel, x.shape[1] // groups)
    sums = convolution_sums(x, filters, zero_point_in, stride, padding, dilation, groups)
    values = output_values(sums, scale_in, weight_scales, bias, axis=1)
    return output_codes(values, activation, scale_out, zero_point_out, code_min, code_max)


@op(
    "et_vk.q8ta_conv2d_pw.default",
    out=_IMAGE,
    derived=_CONVOLVED,
    rules=(*_GEOMETRY, _FITS, _COLUMNS, *_STAGE),
    kernels=POINTWISE,
    operations=_OPERATIONS,
    exact=True,
)
def q8ta_conv2d_pw(
    x: Int8[Array, "n ic h w"],
    scale_in: float,
    zero_point_in: int,
    weight: Int8[Array, "oc columns"],
    weight_sums: Int32[Array, "sum_count"],
    weight_scales: Float32[Array, "scale_count"],
    scale_out: float,
    zero_point_out: int,
    bias: Float32[Array, "bias_count"] | None,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    activation: Literal["none", "relu"],
    *,
    code_min: int = -128,
    code_max: int = 127,
) -> Array:
    """The name under which programs store 1x1 convolutions; see ``et_vk.q8ta_conv2d.default``.

    The contract is the same; the kernels for 1x1 filters are kept under this name.
    """
    filters = filters_of(weight, kernel, x.shape[1] // groups)
    sums = convolution_sums(x, filters, zero_point_in, stride, padding, dilation, groups)
    values = output_values(sums, scale_in, weight_scales, bias, axis=1)
    return output_codes(values, activation, scale_out, zero_point_out, code_min, code_max)


@op(
    "et_vk.q8ta_conv2d_dw.default",
    out=_IMAGE,
    derived=_CONVOLVED,
    rules=(
        *_GEOMETRY,
        _FITS,
        rule("ic == oc == groups", "a depthwise convolution has one filter an input channel"),
        rule("kernel == (kh, kw)", "kernel must be the size of weight's first two axes"),
        *_STAGE,
    ),
    kernels=DEPTHWISE,
    operations=_OPERATIONS,
    exact=True,
)
def q8ta_conv2d_dw(
    x: Int8[Array, "n ic h w"],
    scale_in: float,
    zero_point_in: int,
    weight: Int8[Array, "kh kw oc"],
    weight_sums: Int32[Array, "sum_count"],
    weight_scales: Float32[Array, "scale_count"],
    scale_out: float,
    zero_point_out: int,
    bias: Float32[Array, "bias_count"] | None,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    activation: Literal["none", "relu"],
    *,
    code_min: int = -128,
    code_max: int = 127,
) -> Array:
    """Depthwise 2-D convolution of int8 codes: channel ``c`` is filtered by ``weight[:, :, c]``.

    Values, codes and padding are those of ``et_vk.q8ta_conv2d.default``.
    """
    filters = weight.transpose(2, 0, 1)[..., None]
    sums = convolution_sums(x, filters, zero_point_in, stride, padding, dilation, groups)
    values = output_values(sums, scale_in, weight_scales, bias, axis=1)
    return output_codes(values, activation, scale_out, zero_point_out, code_min, code_max)


@op(
    "et_vk.q8ta_conv2d_transposed.default",
    out=_IMAGE,
    derived={
        "h_out": "(h - 1) * stride[0] - 2 * padding[0] + dilation[0] * (kernel[0] - 1) "
        "+ output_padding[0] + 1",
        "w_out": "(w - 1) * stride[1] - 2 * padding[1] + dilation[1] * (kernel[1] - 1) "
        "+ output_padding[1] + 1",
    },
    rules=(
        *_GEOMETRY,
        _COLUMNS,
        rule("h >= 1 and w >= 1", "a transposed convolution needs an input pixel"),
        rule("len(output_padding) == 2", "output_padding needs two entries: height and width"),
        rule(
            "0 <= output_padding[0] < max(stride[0], dilation[0]) "
            "and 0 <= output_padding[1] < max(stride[1], dilation[1])",
            "output_padding must be smaller than the stride or the dilation",
        ),
        *_STAGE,
    ),
    kernels=TRANSPOSED,
    operations="2 * n * oc * h * w * kernel[0] * kernel[1] * (ic // groups)",
    exact=True,
)
def q8ta_conv2d_transposed(
    x: Int8[Array, "n ic h w"],
    scale_in: float,
    zero_point_in: int,
    weight: Int8[Array, "oc columns"],
    weight_sums: Int32[Array, "sum_count"],
    weight_scales: Float32[Array, "scale_count"],
    scale_out: float,
    zero_point_out: int,
    bias: Float32[Array, "bias_count"] | None,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    output_padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    activation: Literal["none", "relu"],
    *,
    code_min: int = -128,
    code_max: int = 127,
) -> Array:
    """Transposed 2-D convolution of int8 codes.

    Input row ``i`` adds tap ``t`` to the output row ``i * stride - padding + t * dilation``;
    columns alike. Weights, values and codes are those of ``et_vk.q8ta_conv2d.default``.
    """
    filters = filters_of(weight, kernel, x.shape[1] // groups)
    sums = transposed_convolution_sums(
        x, filters, zero_point_in, stride, padding, output_padding, dilation, groups
    )
    values = output_values(sums, scale_in, weight_scales, bias, axis=1)
    return output_codes(values, activation, scale_out, zero_point_out, code_min, code_max)
