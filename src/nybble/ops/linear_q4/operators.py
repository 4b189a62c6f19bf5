"""4-bit weights: linear layers, their gradients, embedding, and re-quantization."""

import math
from typing import Literal

import numpy as np

from nybble.contract import Array, Float32, Int8, Int32, UInt8, op, rule

from .fixed_point import in_fixed_point, quantized_in_fixed_point
from .kernels import (
    BACKWARD,
    CHOOSE_QPARAMS,
    OUTER,
    REQUANT,
    Product,
    embedding_kernels,
    product_kernels,
)
from .layout import W_4X8, W_4X8_HIGH_FIRST, codes_of_bytes
from .reference import (
    affine_parameters,
    dequantized,
    product_of,
    quantized_inputs,
    weight_codes,
)  # fmt: skip

_GROUP = rule("group_size >= 1", "a group has at least one input feature")
_BYTES = rule("2 * row_bytes >= k", "each row of weight needs one nibble an input feature")
_SCALES = rule("scale_count >= n", "scales need one column an output feature")
_PARTS = rule("parts * group_size >= k", "scales need one row a group of input features")
_BIAS = rule("bias is None or bias[0] >= n", "bias needs one element an output feature")
_OPERATIONS = "2 * count * k"


def _with_bias(result: Array, bias: Array | None, features: int) -> Array:
    with np.errstate(all="ignore"):
        whole = result if bias is None else result + bias[:features]
        return whole.astype(np.float32)


@op(
    "et_vk.linear_q4gsw.default",
    out=Float32[Array, "*batch n"],
    rules=[_GROUP, _BYTES, _SCALES, _PARTS, _BIAS],
    kernels=[in_fixed_point(), *product_kernels(Product())],
    operations=_OPERATIONS,
)
def linear_q4gsw(
    x: Float32[Array, "*batch k"],
    weight: UInt8[Array, "n row_bytes"],
    scales: Float32[Array, "parts scale_count"],
    group_size: int,
    bias: Float32[Array, "bias_count"] | None = None,
) -> Array:
    """Linear layer with 4-bit weights and a scale for each group of inputs of each output.

    ``out[m, n] = sum_k x[m, k] * ((code[n, k] - 8) * scales[k // group_size, n]) + bias[n]``.
    The low nibble of byte b of a row of ``weight`` is column 2b, the high one column 2b + 1;
    columns beyond k are ignored. Sums are float32. Scales must be finite; a NaN or an infinity
    in ``x`` gives what IEEE 754 gives.
    """
    matrix = dequantized(weight, scales, group_size, x.shape[-1])
    return _with_bias(product_of(x, matrix), bias, weight.shape[0])


@op(
    "et_vk.linear_dq8ca_q4gsw.default",
    out=Float32[Array, "*batch n"],
    rules=[
        _GROUP, _BYTES, _SCALES, _PARTS, _BIAS,
        rule("numel(input_scales) == numel(batch)", "input_scales need one element a row of x"),
        rule("numel(input_zero_points) == numel(batch)", "zero points need one element a row of x"),
    ],
    kernels=[
        quantized_in_fixed_point(),
        *product_kernels(Product(quantized=True, unused=frozenset({"weight_sums"}))),
    ],
    operations=_OPERATIONS,
)  # fmt: skip
def linear_dq8ca_q4gsw(
    x: Float32[Array, "*batch k"],
    input_scales: Float32[Array, "..."],
    input_zero_points: Int8[Array, "..."],
    weight: UInt8[Array, "n row_bytes"],
    weight_sums: Int32[Array, "..."],
    scales: Float32[Array, "parts scale_count"],
    group_size: int,
    bias: Float32[Array, "bias_count"] | None = None,
) -> Array:
    """``et_vk.linear_q4gsw.default`` on inputs that are quantized to int8, a scale for each row.

    ``q = clamp(rne(x / scale) + zero_point, -128, 127)``, the quotient as IEEE 754 rounds it, on
    every device; then ``scale * sum_k (q - zero_point) * (code - 8) * scales[k // group_size, n]``
    plus the bias. Products of codes are exact integers; they and the scales are summed in float32.
    NaN inputs, subnormal ones, and all inputs of a row whose scale is zero, subnormal or not
    finite, give the code of the zero point. ``weight_sums`` is ignored: sums are exact without it.
    """
    steps = quantized_inputs(x, input_scales, input_zero_points)
    result = product_of(steps, dequantized(weight, scales, group_size, x.shape[-1]))
    with np.errstate(all="ignore"):
        result = result * input_scales.reshape(*x.shape[:-1], 1)
    return _with_bias(result, bias, weight.shape[0])


@op(
    "et_vk.linear_qcs4w.default",
    out=Float32[Array, "*batch n"],
    rules=[_BYTES, _SCALES],
    kernels=[
        in_fixed_point("k", high_first=True),
        *product_kernels(Product(group="k", layout=W_4X8_HIGH_FIRST)),
    ],
    operations=_OPERATIONS,
)
def linear_qcs4w(
    x: Float32[Array, "*batch k"],
    weight: UInt8[Array, "n row_bytes"],
    scales: Float32[Array, "scale_count"],
) -> Array:
    """Linear layer with 4-bit weights and one scale an output: ``x @ ((code - 8) * scale).T``.

    Here the **high** nibble of byte b is column 2b, the low one column 2b + 1.
    """
    depth = max(1, x.shape[-1])
    matrix = dequantized(weight, scales[None], depth, x.shape[-1], high_first=True)
    return product_of(x, matrix).astype(np.float32)


@op(
    "et_vk.linear_q4gsw_backward.default",
    out=Float32[Array, "*batch k"],
    derived={"k": "2 * row_bytes"},
    rules=[_GROUP, _SCALES],
    kernels=BACKWARD,
    operations="2 * count * n",
)
def linear_q4gsw_backward(
    d_out: Float32[Array, "*batch n"],
    weight: UInt8[Array, "n row_bytes"],
    scales: Float32[Array, "parts scale_count"],
    group_size: int,
) -> Array:
    """The gradient of a 4-bit linear layer's input: ``d_out @ dequantized weight``.

    The result has one column a nibble of ``weight``, padding included; columns beyond the last
    group of ``scales`` are zero.
    """
    matrix = dequantized(weight, scales, group_size, 2 * weight.shape[1])
    return product_of(d_out, matrix.T).astype(np.float32)


@op(
    "et_vk.linear_dW.default",
    out=Float32[Array, "n k"],
    kernels=OUTER,
    operations="2 * count * numel(batch)",
)
def linear_dw(d_out: Float32[Array, "*batch n"], x: Float32[Array, "*batch k"]) -> Array:
    """The gradient of a linear layer's weight: ``d_out.T @ x`` over all leading axes."""
    rows = math.prod(x.shape[:-1])
    left, right = (a.reshape(rows, a.shape[-1]) for a in (d_out, x))
    return product_of(left.T, right.T).astype(np.float32)


@op(
    "et_vk.q4gsw_requant.default",
    out=UInt8[Array, "n row_bytes"],
    derived={"row_bytes": "cdiv(k, 2)"},
    rules=[_GROUP, _SCALES, _PARTS],
    kernels=REQUANT,
    exact=True,
)
def q4gsw_requant(
    latent: Float32[Array, "n k"],
    scales: Float32[Array, "parts scale_count"],
    group_size: int,
) -> Array:
    """4-bit codes of ``latent``: ``clamp(rne(latent / scales[k // group_size, n]), -8, 7) + 8``.

    The quotient is the one that IEEE 754 rounds to float32, for all normal operands, on every
    device. A zero scale gives code 8, and so does NaN in either operand. Subnormals count as zero;
    an infinite latent saturates, an infinite scale gives code 8. The nibble that fills the last
    byte of an odd row is 0.
    """
    return weight_codes(latent, scales, group_size)


@op(
    "et_vk.embedding_q4gsw.default",
    out=Float32[Array, "*positions e"],
    derived={"e": "2 * row_bytes"},
    rules=[
        _GROUP,
        rule("groups * group_size >= e", "scales need one column a group of features"),
        rule("scale_rows >= v", "scales need one row a token"),
    ],
    kernels=[
        *embedding_kernels(W_4X8, "is_linear_weight"),
        *embedding_kernels(W_4X8_HIGH_FIRST, "not is_linear_weight"),
    ],
    exact=True,
)
def embedding_q4gsw(
    weight: UInt8[Array, "v row_bytes"],
    scales: Float32[Array, "scale_rows groups"],
    group_size: int,
    indices: Int32[Array, "*positions"],
    is_linear_weight: bool = False,
) -> Array:
    """Rows of a 4-bit table: ``(code - 8) * scales[token, column // group_size]``.

    With ``is_linear_weight`` the low nibble of a byte is the even column, else the high one. Here
    scales are ``[row][group]``. A token outside ``0 .. v - 1`` gives a row of zeros.
    """
    inside = (indices >= 0) & (indices < weight.shape[0])
    if not weight.shape[0]:
        return np.zeros((*indices.shape, 2 * weight.shape[1]), np.float32)
    rows = np.where(inside, indices, 0)
    codes = codes_of_bytes(weight, 2 * weight.shape[1], high_first=not is_linear_weight)
    groups = np.arange(codes.shape[1]) // group_size
    with np.errstate(all="ignore"):
        values = (codes[rows].astype(np.float32) - np.float32(8)) * scales[rows][..., groups]
    return np.where(inside[..., None], values, np.float32(0)).astype(np.float32)


@op(
    "torchao.choose_qparams_affine.default",
    out={"scale_out": Float32[Array, "*batch"], "zero_point": Int8[Array, "*batch"]},
    rules=[
        rule("prod(block_size) == k and block_size[-1] == k", "a block must be one row of x"),
        rule("-128 <= code_min < code_max <= 127", "codes must be a range of int8"),
    ],
    kernels=CHOOSE_QPARAMS,
    operations="2 * numel(x)",
    exact=True,
)
def choose_qparams_affine(
    x: Float32[Array, "*batch k"],
    mapping: Literal["ASYMMETRIC"],
    block_size: tuple[int, ...],
    target_dtype: None,
    code_min: int,
    code_max: int,
    eps: float | None,
    scale_dtype: None,
    zero_point_dtype: None,
    keepdim: bool,
) -> tuple[Array, Array]:
    """Scale and zero point of each row, as the exporter's runtimes choose them (float32).

    With a = min(0, row) and b = max(0, row): ``s = (b - a) / (code_max - code_min)``, 0.1 where
    that is 0. Below T = 6.1e-5, s becomes T, and a and b grow with it. The zero point is
    ``code_min - a / s`` or ``code_max - b / s``, whichever end is farther from its code, clamped
    and rounded half to even. NaN elements and subnormal ones count as zero, magnitudes above
    2**126 as 2**126. ``eps`` and ``keepdim`` change nothing.
    """
    return affine_parameters(x, code_min, code_max)
