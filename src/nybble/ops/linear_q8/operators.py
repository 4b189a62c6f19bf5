"""int8 linear layers: rows of codes times a matrix with one scale an output column."""

from typing import Literal

import numpy as np

from nybble.contract import Array, Float32, Int8, Int32, op, rule
from nybble.ops.arithmetic import scale_rule, zero_point_rule
from nybble.ops.output_stage import (
    LONGEST_SUM,
    code_rules,
    output_codes,
    output_values,
    vector_rules,
)

from .kernels import LINEAR_CODES, LINEAR_FLOATS, ROW_CODES

_PRODUCT = (
    rule("columns >= k", "each row of weight needs one column an input feature"),
    rule(
        f"k <= {LONGEST_SUM}",
        f"at most {LONGEST_SUM} input features, else a sum overflows 32 bits",
    ),
    *vector_rules("n"),
)
_OPERATIONS = "2 * count * k"


def linear_sums(x: Array, zero_point: int, weight: Array) -> Array:
    """``sum((x - zero_point) * w)`` over features as float64, exact: integers below 2**53."""
    matrix = weight[:, : x.shape[-1]].astype(np.float64)
    return (x.astype(np.float64) - zero_point) @ matrix.T


@op(
    "et_vk.q8ta_linear.default",
    out=Int8[Array, "*batch n"],
    rules=(*_PRODUCT, *code_rules()),
    kernels=LINEAR_CODES,
    operations=_OPERATIONS,
    exact=True,
)
def q8ta_linear(
    x: Int8[Array, "*batch k"],
    scale_in: float,
    zero_point_in: int,
    weight: Int8[Array, "n columns"],
    weight_sums: Int32[Array, "sum_count"],
    weight_scales: Float32[Array, "scale_count"],
    scale_out: float,
    zero_point_out: int,
    bias: Float32[Array, "bias_count"] | None,
    activation: Literal["none", "relu"],
    *,
    code_min: int = -128,
    code_max: int = 127,
) -> Array:
    """Linear layer from int8 codes to int8 codes; ``weight`` is ``[n, k]``.

    Columns of ``weight`` beyond ``k`` are ignored, as is ``weight_sums``: sums are exact without
    it. With the integer sum of ``(x - zero_point_in) * w``, the value is
    ``f32(sum) * scale_in * weight_scales[n] + bias[n]``, then ``max(value, 0)`` for "relu";
    the result is ``clamp(rne(value * inv(scale_out)) + zero_point_out, code_min, code_max)``.
    A NaN value gives ``zero_point_out``; infinities saturate.
    """
    sums = linear_sums(x, zero_point_in, weight)
    values = output_values(sums, scale_in, weight_scales, bias, axis=-1)
    return output_codes(values, activation, scale_out, zero_point_out, code_min, code_max)


@op(
    "et_vk.q8ta_linear_gemv.default",
    out=Int8[Array, "*batch n"],
    rules=(*_PRODUCT, *code_rules()),
    kernels=ROW_CODES,
    operations=_OPERATIONS,
    exact=True,
)
def q8ta_linear_gemv(
    x: Int8[Array, "*batch k"],
    scale_in: float,
    zero_point_in: int,
    weight: Int8[Array, "n columns"],
    weight_sums: Int32[Array, "sum_count"],
    weight_scales: Float32[Array, "scale_count"],
    scale_out: float,
    zero_point_out: int,
    bias: Float32[Array, "bias_count"] | None,
    activation: Literal["none", "relu"],
    *,
    code_min: int = -128,
    code_max: int = 127,
) -> Array:
    """The name under which programs store one-row linear layers; see ``et_vk.q8ta_linear.default``.

    The contract is the same, for any number of rows; the kernels are those for few.
    """
    sums = linear_sums(x, zero_point_in, weight)
    values = output_values(sums, scale_in, weight_scales, bias, axis=-1)
    return output_codes(values, activation, scale_out, zero_point_out, code_min, code_max)


@op(
    "et_vk.linear_q8ta_q8csw.default",
    out=Float32[Array, "*batch n"],
    rules=(*_PRODUCT, scale_rule("scale_in"), zero_point_rule("zero_point_in")),
    kernels=LINEAR_FLOATS,
    operations=_OPERATIONS,
    exact=True,
)
def linear_q8ta_q8csw(
    x: Int8[Array, "*batch k"],
    scale_in: float,
    zero_point_in: int,
    weight: Int8[Array, "n columns"],
    weight_sums: Int32[Array, "sum_count"],
    weight_scales: Float32[Array, "scale_count"],
    bias: Float32[Array, "bias_count"] | None,
) -> Array:
    """Linear layer from int8 codes to float32 values: ``et_vk.q8ta_linear.default`` unquantized.

    The result is ``f32(sum) * scale_in * weight_scales[n] + bias[n]``, left to right in float32.
    Results below 2**-126 may be flushed to zero; NaN and infinities follow IEEE 754.
    """
    sums = linear_sums(x, zero_point_in, weight)
    return output_values(sums, scale_in, weight_scales, bias, axis=-1)
