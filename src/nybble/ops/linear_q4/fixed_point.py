"""Products with 4-bit weights on int8 matrix units: inputs in fixed point, exact sums a group.

A block of 32 inputs becomes integers of 14 bits and a sign over a power of two; each is two int8.
Sums of a block's products with codes are exact, and take the scales in float32.
"""

import math
from typing import Any

import numpy as np

from nybble.contract import Array, Composite, Emit, Float32, Int8, Kernel, UInt8, op, rule, u32

from .layout import W_4X8, W_4X8_HIGH_FIRST
from .reference import dequantized, product_of, quantized_inputs
from .tiles import DECODE_ROWS, ROWS

__all__ = ["in_fixed_point", "quantized_in_fixed_point"]

BLOCK = 32
"""Inputs that share a power of two: the depth of an int8 matrix."""
_TILE_N = 128
_SCALE_ROW = "scales[len(scales) - 1]"
_BLOCKS = rule("k % 32 == 0", "inputs come in blocks of 32")
_UNITS = "'i8xi8->i32 16x16x32' in matrix_units"
_MEMORY = "272 * TILE_M + 80 * TILE_N + 8 * (TILE_M + TILE_N)"
"""Bytes of the shader's workgroup memory: results on their way out, codes, and scales."""


_FIXED_POINT: dict[str, Any] = {
    "limbs": Int8[Array, "*batch blocks 2 32"],
    "x_scales": Float32[Array, "blocks *batch"],
}


def _block_kernel(shader: str, constants: dict[str, Any]) -> Kernel:
    """A kernel of which each thread makes one block."""
    return Kernel(
        shader,
        grid=("cdiv(rows * blocks, THREADS)",),
        params={"rows": u32(ROWS), "blocks": u32("k // 32"), "quads": u32("k // 4")},
        constants=constants,
        vectors={"x": 4, "limbs": 4},
    )


def _limbs(integers: Array) -> Array:
    """``[*batch, k]`` integers as int8 ``[*batch, blocks, 2, 32]``, the higher byte first."""
    blocks = integers.astype(np.int32).reshape(*integers.shape[:-1], -1, 1, BLOCK)
    high = (blocks + 128) >> 8
    return np.concatenate([high, blocks - high * 256], axis=-2).astype(np.int8)


@op(
    "nybble.fixed_point.default",
    out=_FIXED_POINT,
    derived={"blocks": "k // 32"},
    rules=[_BLOCKS],
    kernels=[_block_kernel("fixed_point.wgsl", {"THREADS": 128})],
    operations="numel(x)",
    exact=True,
)
def fixed_point(x: Float32[Array, "*batch k"]) -> tuple[Array, Array]:
    """Each block of 32 inputs as integers ``n``, ``|n| <= 16384``, times a power of two.

    ``n = rne(x / scale)`` with the scale 2^(e - 13) of a block whose largest magnitude has the
    exponent e, at least 2^-125. ``limbs`` holds ``n`` as ``256 * high + low``, both int8. A block
    with an infinity or a NaN has integers 0 and the scale NaN.
    """
    blocks = x.reshape(*x.shape[:-1], -1, BLOCK)
    sizes = (blocks.view(np.uint32) & 0x7FFFFFFF).max(axis=-1, initial=0)
    exponents = np.clip((sizes >> 23).astype(np.int32) - 13, 2, 252)
    finite = sizes < 0x7F800000
    inverse = np.ldexp(np.float32(1), 127 - exponents)[..., None]
    with np.errstate(all="ignore"):
        integers = np.rint(blocks * inverse)
    integers = np.where(finite[..., None], integers, 0)
    scales = np.where(finite, np.ldexp(np.float32(1), exponents - 127), np.float32(np.nan))
    moved = np.moveaxis(scales.astype(np.float32), -1, 0)
    return _limbs(integers.reshape(x.shape)), np.ascontiguousarray(moved)


@op(
    "nybble.fixed_codes.default",
    out=_FIXED_POINT,
    derived={"blocks": "k // 32"},
    rules=[
        _BLOCKS,
        rule("numel(input_scales) == numel(batch)", "input_scales need one element a row of x"),
        rule("numel(input_zero_points) == numel(batch)", "zero points need one element a row of x"),
    ],
    kernels=[
        _block_kernel(
            "fixed_codes.wgsl",
            {"THREADS": 64, "WIDE": True, "FULL": True, "QUANTIZED": True, "SURE": 0.499},
        )
    ],
    operations="numel(x)",
    exact=True,
)  # fmt: skip
def fixed_codes(
    x: Float32[Array, "*batch k"],
    input_scales: Float32[Array, "..."],
    input_zero_points: Int8[Array, "..."],
) -> tuple[Array, Array]:
    """Rows quantized to int8 as ``et_vk.linear_dq8ca_q4gsw.default`` says, less the zero point.

    ``limbs`` as those of ``nybble.fixed_point.default``; the scale of every block is its row's.
    """
    steps = quantized_inputs(x, input_scales, input_zero_points)
    rows = input_scales.reshape(x.shape[:-1])
    scales = np.broadcast_to(rows, (x.shape[-1] // BLOCK, *rows.shape))
    return _limbs(steps), np.ascontiguousarray(scales)


def _product_kernel(tile_m: int, *, high_first: bool) -> Kernel:
    rows = f"{ROWS} > 64" if tile_m == 128 else "True"
    return Kernel(
        "fixed_product.wgsl",
        grid=("splits * tiles * cdiv(rows, TILE_M)",),
        params={
            "rows": u32(ROWS),
            "n": u32("n"),
            "blocks": u32("blocks"),
            "down": u32("cdiv(n, 8)"),
            "scale_row": u32(_SCALE_ROW),
            "tiles": u32("cdiv(n, TILE_N)"),
            "splits": u32("splits"),
            "steps": u32("blocks // 2 // splits"),
        },
        constants={
            "TILE_M": tile_m,
            "TILE_N": _TILE_N,
            "GROUP_BLOCKS": "group_size // 32 if group_size < 32 * blocks else 0",
        },
        layouts={"weight": W_4X8_HIGH_FIRST if high_first else W_4X8},
        vectors={"x": 4, "weight": 2, "out": 4},
        when=f"{_UNITS} and max_workgroup_bytes >= {_MEMORY} and n % 4 == 0 and {rows} "
        f"and high_first == {high_first}",
    )


@op(
    "nybble.linear_fixed_q4.default",
    out=Float32[Array, "count_out *batch n"],
    derived={"count_out": "splits"},
    rules=[
        rule("splits >= 1", "there is at least one part"),
        rule("blocks % (2 * splits) == 0", "every part has the same number of steps of two blocks"),
        rule("group_size % 32 == 0 or group_size >= 32 * blocks", "groups are whole blocks"),
        rule(
            f"numel(scales) // {_SCALE_ROW} * group_size >= 32 * blocks",
            "scales need one row a group of input features",
        ),
        rule(f"{_SCALE_ROW} >= n", "scales need one column an output feature"),
        rule("2 * row_bytes >= 32 * blocks", "each row of weight needs one nibble an input"),
    ],
    kernels=[
        _product_kernel(tile_m, high_first=high_first)
        for high_first in (False, True)
        for tile_m in (128, 64)
    ],
    operations="64 * blocks * count // splits",
)
def linear_fixed_q4(
    x: Int8[Array, "*batch blocks 2 32"],
    x_scales: Float32[Array, "blocks *batch"],
    weight: UInt8[Array, "n row_bytes"],
    scales: Float32[Array, "..."],
    group_size: int,
    splits: int,
    high_first: bool,
) -> Array:
    """Fixed-point numbers times 4-bit weights, in ``splits`` parts that are to be added.

    A block's sum of products with codes is exact; it takes the block's scale and the group's in
    float32. Part i has the blocks from ``i * blocks / splits`` on.
    ``scales`` are ``[groups, columns]``, or ``[columns]`` of one group. With ``high_first`` a
    byte's high nibble is the even column.
    """
    *batch, blocks, _, _ = x.shape
    limbs = x.astype(np.float64)
    with np.errstate(all="ignore"):
        values = (256 * limbs[..., 0, :] + limbs[..., 1, :]) * np.moveaxis(x_scales, 0, -1)[
            ..., None
        ]
    columns = BLOCK * blocks
    table = np.atleast_2d(scales)
    matrix = dequantized(weight, table, group_size, columns, high_first=high_first)
    flat = values.reshape(*batch, columns)
    step = columns // splits
    parts = [
        product_of(flat[..., first : first + step], matrix[:, first : first + step])
        for first in range(0, splits * step, max(step, 1))
    ]
    return np.stack(parts).astype(np.float32)


def _sum_kernel(*, repaired: bool, high_first: bool = False) -> Kernel:
    repair = {
        "quads": u32("k // 4"),
        "down": u32("cdiv(n, 8)"),
        "scale_row": u32(_SCALE_ROW),
        "group": u32("min(group_size, max(k, 1))"),
    }
    return Kernel(
        "fixed_sum.wgsl",
        grid=("cdiv(rows * across, THREADS)",),
        params={
            "rows": u32(ROWS),
            "across": u32("n // 4"),
            "splits": u32("splits"),
            **(repair if repaired else {}),
        },
        constants={"THREADS": 128, "REPAIRED": repaired, "WIDE": False},
        layouts={"weight": W_4X8_HIGH_FIRST if high_first else W_4X8} if repaired else {},
        vectors={"parts": 4, "out": 4, **({"x": 4, "weight": 2} if repaired else {})},
        when=f"n % 4 == 0 and k % 4 == 0 and high_first == {high_first}"
        if repaired
        else "n % 4 == 0",
    )


def _summed(parts: Array, bias: Array | None) -> Array:
    with np.errstate(all="ignore"):
        total = parts.sum(axis=0, dtype=np.float64)
        whole = total if bias is None else total + bias[: total.shape[-1]]
        return np.asarray(whole, np.float32)


@op(
    "nybble.sum_parts.default",
    out=Float32[Array, "*batch n"],
    kernels=[_sum_kernel(repaired=False)],
)
def sum_parts(
    parts: Float32[Array, "splits *batch n"], bias: Float32[Array, "bias_count"] | None = None
) -> Array:
    """The sum over the first axis, and the bias."""
    return _summed(parts, bias)


@op(
    "nybble.sum_linear_q4.default",
    out=Float32[Array, "*batch n"],
    kernels=[_sum_kernel(repaired=True, high_first=high_first) for high_first in (False, True)],
)
def sum_linear_q4(
    parts: Float32[Array, "splits *batch n"],
    x: Float32[Array, "*batch k"],
    weight: UInt8[Array, "n row_bytes"],
    scales: Float32[Array, "..."],
    group_size: int,
    high_first: bool,
    bias: Float32[Array, "bias_count"] | None = None,
) -> Array:
    """The sum of a product's parts, and the bias; what is NaN is made anew from ``x``."""
    table = np.atleast_2d(scales)
    matrix = dequantized(weight, table, group_size, x.shape[-1], high_first=high_first)
    with np.errstate(all="ignore"):
        total = parts.sum(axis=0, dtype=np.float64)
    return _summed(np.where(np.isnan(total), product_of(x, matrix), total)[None], bias)


def _splits(rows: int, n: int, k: int) -> int:
    """Parts of the depth, so that a large GPU's processors all have a tile."""
    tile_m, wanted = (128, 128) if rows > 64 else (64, 256)
    tiles = max(1, -(-rows // tile_m) * -(-n // _TILE_N))
    most = max(1, min(wanted // tiles, 8, k // 256))
    return next(parts for parts in (8, 4, 2, 1) if parts <= most and k // 64 % parts == 0)


def _when(group: str) -> str:
    """Where a product is worth three dispatches."""
    whole = f"k % 64 == 0 and n % 4 == 0 and ({group} % 32 == 0 or {group} >= k)"
    large = f"{ROWS} > {DECODE_ROWS} and {ROWS} * n * k >= 67108864"
    return f"not software and {_UNITS} and {whole} and {large}"


def _multiplied(
    emit: Emit, prepared: tuple[Any, Any], x: Any, group_size: int, **weights: Any
) -> Any:
    """The parts of the product of prepared rows of ``x``."""
    *batch, k = x.shape
    limbs, x_scales = prepared
    splits = _splits(math.prod(batch), weights["weight"].shape[0], k)
    return emit(
        "nybble.linear_fixed_q4.default",
        x=limbs,
        x_scales=x_scales,
        group_size=group_size,
        splits=splits,
        **weights,
    )


def in_fixed_point(group: str = "group_size", *, high_first: bool = False) -> Composite:
    """The product of float32 rows, prepared, multiplied and summed.

    Args:
        group: the group size, an expression.
        high_first: the order of the weight's nibbles.
    """

    def expand(
        emit: Emit,
        x: Any,
        weight: Any,
        scales: Any,
        group_size: int | None = None,
        bias: Any = None,
    ) -> Any:
        size = x.shape[-1] if group_size is None else group_size
        weights = {"weight": weight, "scales": scales, "high_first": high_first}
        prepared = emit("nybble.fixed_point.default", x=x)
        parts = _multiplied(emit, prepared, x, size, **weights)
        return emit(
            "nybble.sum_linear_q4.default", parts=parts, x=x, group_size=size, bias=bias, **weights
        )

    return Composite("fixed_point", expand, when=_when(group), precision="float16")


def _expand_quantized(
    emit: Emit,
    x: Any,
    input_scales: Any,
    input_zero_points: Any,
    weight: Any,
    weight_sums: Any,
    scales: Any,
    group_size: int,
    bias: Any = None,
) -> Any:
    prepared = emit(
        "nybble.fixed_codes.default",
        x=x,
        input_scales=input_scales,
        input_zero_points=input_zero_points,
    )
    parts = _multiplied(
        emit, prepared, x, group_size, weight=weight, scales=scales, high_first=False
    )
    return emit("nybble.sum_parts.default", parts=parts, bias=bias)


def quantized_in_fixed_point() -> Composite:
    """The product of rows quantized on the way: exact sums in each group, as without the units."""
    return Composite("fixed_codes", _expand_quantized, when=_when("group_size"))
