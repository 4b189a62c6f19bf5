"""The kernels that linear layers and pointwise convolutions share: rows of codes times a matrix.

A row is the words of one pixel or of one linear input. Every weight constant begins with each
output channel's weight sum, int32, for all channels that its padding makes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nybble.contract import CHANNELS4, Kernel, Layout, constant_layout, u32
from nybble.contract.annotations import Array

from .output_stage import FLOAT_CONSTANTS, FLUSHED, INPUT_PARAMS, STAGE_CONSTANTS, STAGE_PARAMS

__all__ = ["RowProduct", "row_kernels"]


@dataclass(frozen=True)
class RowProduct:
    """How an operator spells its product, in expressions of its names.

    Args:
        name: distinguishes its weight layouts.
        matrix: the weight as int8 ``[features, taps * 4 * cdiv(depth, 4)]``.
        rows: the number of rows of results.
        depth: the axis of codes that a row, or a tap of it, holds.
        features: the axis of output channels.
        when: the condition on the operator's attributes.
        taps: how often ``depth`` is read for a row.
        params: further uniform fields.
        constants: further constants; ``IMAGE`` tells whether rows are gathered from an image.
        quantized: int8 results in channel words; else float32 in row-major order.
        many_rows: whether calls with many rows deserve kernels of their own.
    """

    name: str
    matrix: Callable[[Array, Mapping[str, Any]], Array]
    rows: str
    depth: str
    features: str
    when: str
    taps: str = "1"
    params: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=lambda: {"IMAGE": False})
    quantized: bool = True
    many_rows: bool = True

    @property
    def words(self) -> str:
        """Words of one tap."""
        return f"cdiv({self.depth}, 4)"


@dataclass(frozen=True)
class _Tile:
    """A workgroup's share of the product: rows by channels, a thread's part, vectors a step."""

    tile_m: int
    tile_n: int
    rows: int
    columns: int
    step: int


# Each takes a call with at least so many results: enough tiles for the processors of a large GPU.
_TILES = {
    _Tile(64, 128, 8, 8, 2): 2097152,
    _Tile(32, 64, 4, 4, 4): 524288,
    _Tile(32, 32, 2, 4, 4): 0,
}


@dataclass(frozen=True)
class _MatrixTile:
    """A workgroup's rows by channels on the matrix units, its subgroups, vectors a step."""

    tile_m: int
    tile_n: int
    across: int
    down: int
    step: int


_MATRIX_TILES = {
    _MatrixTile(128, 128, 2, 2, 4): 2097152,
    _MatrixTile(64, 64, 2, 2, 4): 1048576,
    _MatrixTile(32, 64, 2, 2, 8): 524288,
    _MatrixTile(32, 32, 2, 2, 8): 0,
}
# A device reports a shape only where its kernels get subgroups of the 32 threads they count on.
_MATRIX_UNITS = "'i8xi8->i32 16x16x32' in matrix_units and max_workgroup_bytes >= 32768"
_MATRIX_ROWS = 16
"""Rows from which a tile of them is no waste."""


def row_kernels(product: RowProduct) -> list[Kernel]:
    """The kernels for a product, in order of preference; their conditions leave some calls out."""
    kernels = []
    for wide in (True, False):
        kernels.append(_float_kernel(product, wide))
        kernels += [
            _matrix_kernel(product, wide, matrix_tile, size)
            for matrix_tile, size in _MATRIX_TILES.items()
            if product.many_rows or size == 0
        ]
        if not product.constants["IMAGE"]:
            kernels.append(_split_kernel(product, wide))
        kernels += [
            _tile_kernel(product, wide, tile, size)
            for tile, size in _TILES.items()
            if product.many_rows or size == 0
        ]
    return kernels


def _padded_rows(matrix: Array, channels: int, codes: int) -> Array:
    """The matrix with zero rows and columns up to multiples of ``channels`` and ``codes``."""
    rows, columns = matrix.shape
    padded = np.zeros((rows + -rows % channels, columns + -columns % codes), np.int8)
    padded[:rows, :columns] = matrix
    return padded


def _with_sums(matrix: Array, words: Array) -> Array:
    sums = matrix.sum(axis=1, dtype=np.int32)
    return np.concatenate([sums.view("<u4"), np.ascontiguousarray(words).reshape(-1).view("<u4")])


def _row_layout(product: RowProduct, channels: int, codes: int) -> Layout:
    def pack(weight: Array, names: Mapping[str, Any]) -> Array:
        padded = _padded_rows(product.matrix(weight, names), channels, codes)
        return _with_sums(padded, padded)

    return constant_layout(f"{product.name}_rows_{channels}x{codes}", pack)


def _tile_layout(product: RowProduct, tile: _Tile) -> Layout:
    """Vectors of sixteen codes ``[vector, channel]``, channels in the order of a tile's threads."""
    threads = tile.tile_n // tile.columns

    def pack(weight: Array, names: Mapping[str, Any]) -> Array:
        padded = _padded_rows(product.matrix(weight, names), tile.tile_n, 32 * tile.step)
        split = padded.reshape(-1, tile.columns // 4, threads, 4, padded.shape[1] // 16, 16)
        return _with_sums(padded, split.transpose(4, 0, 1, 3, 2, 5))

    name = f"{product.name}_tiles_{tile.tile_n}x{tile.columns}x{tile.step}"
    return constant_layout(name, pack)


def _matrix_layout(product: RowProduct, tile: _MatrixTile) -> Layout:
    """Vectors ``[tile, step, vector]``, those of a step in the order in which they are stored."""
    lines = np.arange(tile.tile_n)
    if tile.step == 4:
        lines = (lines & ~7) | ((lines >> 1) & 3) | ((lines & 1) << 2)

    def pack(weight: Array, names: Mapping[str, Any]) -> Array:
        padded = _padded_rows(product.matrix(weight, names), tile.tile_n, 16 * tile.step)
        depth = 16 * tile.step
        split = padded.reshape(-1, tile.tile_n, padded.shape[1] // depth, depth)
        return _with_sums(padded, split[:, lines].transpose(0, 2, 1, 3))

    name = f"{product.name}_matrix_{tile.tile_n}x{tile.step}"
    return constant_layout(name, pack)


def _float_kernel(product: RowProduct, wide: bool) -> Kernel:
    threads, lanes, rows, quads = 8, 8, 4, 1
    vector = 4 if wide else 1
    return _kernel(
        product,
        "rows_float.wgsl",
        wide,
        grid=f"blocks * cdiv(rows, {threads // lanes * rows})",
        channels=f"round_up({product.features}, {4 * quads})",
        params={
            "blocks": f"cdiv({product.features}, {4 * quads * lanes})",
            "length": f"({product.taps}) * {product.words} // {vector}",
        },
        constants={
            "THREADS": threads,
            "LANES": lanes,
            "ROWS": rows,
            "QUADS": quads,
            "LONG": f"({product.taps}) * {product.depth} > 1024",
        },
        weight=_row_layout(product, 4 * quads, 4 * vector),
        weight_width=vector,
        when=["software", f"{product.rows} >= 4"],
    )


def _split_kernel(product: RowProduct, wide: bool) -> Kernel:
    slices, quads, rows = 32, 4, 2
    return _kernel(
        product,
        "rows_split.wgsl",
        wide,
        grid=f"blocks * cdiv(rows, {rows})",
        channels=f"round_up({product.features}, 4)",
        params={
            "blocks": f"cdiv({product.features}, {4 * quads})",
            "vectors": f"cdiv({product.depth}, 16)",
        },
        constants={"SLICES": slices, "QUADS": quads, "ROWS": rows},
        weight=_row_layout(product, 4, 16),
        weight_width=4,
        when=[
            "not software",
            f"{product.rows} <= 49 or {product.rows} <= 256 and {product.depth} >= 384",
        ],
    )


def _matrix_kernel(product: RowProduct, wide: bool, tile: _MatrixTile, size: int) -> Kernel:
    return _kernel(
        product,
        "rows_matrix.wgsl",
        wide,
        grid=f"tiles_across * cdiv(rows, {tile.tile_m})",
        channels=f"round_up({product.features}, {tile.tile_n})",
        params={
            "tiles_across": f"cdiv({product.features}, {tile.tile_n})",
            "steps": f"cdiv(({product.taps}) * {product.words}, {4 * tile.step})",
        },
        constants={
            "TILE_M": tile.tile_m,
            "TILE_N": tile.tile_n,
            "ACROSS": tile.across,
            "DOWN": tile.down,
            "STEP": tile.step,
        },
        weight=_matrix_layout(product, tile),
        weight_width=4,
        when=[
            "not software",
            _MATRIX_UNITS,
            f"{product.rows} >= {_MATRIX_ROWS}",
            f"{product.rows} * {product.features} >= {size}",
        ],
    )


def _tile_kernel(product: RowProduct, wide: bool, tile: _Tile, size: int) -> Kernel:
    return _kernel(
        product,
        "rows_tile.wgsl",
        wide,
        grid=f"tiles_across * cdiv(rows, {tile.tile_m})",
        channels=f"round_up({product.features}, {tile.tile_n})",
        params={
            "tiles_across": f"cdiv({product.features}, {tile.tile_n})",
            "steps": f"round_up(cdiv(({product.taps}) * {product.words}, {4 * tile.step}), 2)",
        },
        constants={
            "TILE_M": tile.tile_m,
            "TILE_N": tile.tile_n,
            "ROWS": tile.rows,
            "COLUMNS": tile.columns,
            "STEP": tile.step,
        },
        weight=_tile_layout(product, tile),
        weight_width=4,
        when=["not software", f"{product.rows} * {product.features} >= {size}"],
    )


def _kernel(
    product: RowProduct,
    shader: str,
    wide: bool,
    *,
    grid: str,
    channels: str,
    params: Mapping[str, str],
    constants: Mapping[str, Any],
    weight: Layout,
    weight_width: int,
    when: Sequence[str],
) -> Kernel:
    words = f"{product.words} % 4 == 0" if wide else "True"
    conditions = (product.when, f"{product.depth} > 0", words, *when)
    fields = {
        "rows": product.rows,
        "depth": f"{product.words} // {4 if wide else 1}",
        "quads_out": f"cdiv({product.features}, 4)",
        "features": product.features,
        "channels": channels,
        "weights_start": f"{channels} // {weight_width}",
        **product.params,
        **params,
    }
    stage = STAGE_PARAMS if product.quantized else INPUT_PARAMS
    fixed = STAGE_CONSTANTS if product.quantized else FLOAT_CONSTANTS
    results = {"out": CHANNELS4} if product.quantized else {}
    widths = {"weight": weight_width, "x": 4 if wide else 1}
    return Kernel(
        shader,
        grid=(grid,),
        params={**{key: u32(value) for key, value in fields.items()}, **stage},
        constants={"WIDE": wide, **constants, **product.constants, **fixed},
        layouts={"x": CHANNELS4, "weight": weight, "weight_scales": FLUSHED, **results},
        vectors={"weight_scales": 4, "bias": 4, **{k: v for k, v in widths.items() if v > 1}},
        unused=frozenset({"weight_sums"}),
        when=" and ".join(f"({text})" for text in conditions),
    )
