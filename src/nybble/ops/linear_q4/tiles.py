"""The tiled kernels of products with 4-bit weights and of their gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from nybble.contract import Kernel, Layout, Param, u32

__all__ = ["DECODE_ROWS", "ROWS", "Tile", "tiled_kernels"]

DECODE_ROWS = 16
"""Rows up to which reading the weights once a strip of four costs less than whole tiles."""
ROWS = "numel(batch)"
_Precision = Literal["float32", "float16"]


@dataclass(frozen=True)
class Tile:
    """A workgroup's rows and columns, a thread's, and the depth of a step."""

    tile_m: int
    tile_n: int
    rows: int
    columns: int
    depth: int

    @property
    def constants(self) -> dict[str, Any]:
        """The tile as the shader names it."""
        return {
            "TILE_M": self.tile_m,
            "TILE_N": self.tile_n,
            "ROWS": self.rows,
            "COLUMNS": self.columns,
            "DEPTH": self.depth,
        }


@dataclass(frozen=True)
class _MatrixTile:
    """A workgroup's rows and columns on the matrix units, its subgroups, the depth of a step."""

    tile_m: int
    tile_n: int
    across: int
    down: int
    depth: int = 32

    @property
    def constants(self) -> dict[str, Any]:
        """The tile as the shader names it."""
        return {
            "TILE_M": self.tile_m,
            "TILE_N": self.tile_n,
            "ACROSS": self.across,
            "DOWN": self.down,
            "DEPTH": self.depth,
        }


# Each takes a call with at least so many results: enough tiles for the processors of a large GPU.
# A gradient of weights has results enough for many small tiles, which are quicker.
_MATRIX_TILES = {_MatrixTile(64, 128, 4, 2): 1048576, _MatrixTile(64, 64, 2, 2): 0}
_MATRIX_UNITS = "'bf16xbf16->f32 16x16x16' in matrix_units and max_workgroup_bytes >= 32768"


def tiled_kernels(
    tile: Tile,
    kind: str,
    extents: tuple[str, str, str],
    *,
    params: Mapping[str, Any],
    constants: Mapping[str, Any],
    layouts: Mapping[str, Layout],
    vectors: Mapping[str, int],
    when: str,
    unused: frozenset[str] = frozenset(),
    on_matrix_units: bool = True,
) -> list[Kernel]:
    """The tiled product of ``extents`` (rows, columns, depth), on the matrix units or without.

    The latter twice: with its inner loop written out, which a CPU's compiler takes far too long
    over, and as a loop.
    """
    rows, columns, _ = extents
    many = f"not software and {_MATRIX_UNITS} and {ROWS} > {DECODE_ROWS} and {when}"
    choices: list[tuple[str, Mapping[str, Any], str, _Precision]] = [
        ("matrix.wgsl", shape.constants, f"{many} and {rows} * {columns} >= {size}", "float16")
        for shape, size in _MATRIX_TILES.items()
        if on_matrix_units and (kind != "outer" or size == 0)
    ]
    choices += [
        ("tiled.wgsl", {**tile.constants, "UNROLLED": True}, f"not software and {when}", "float32"),
        ("tiled.wgsl", {**tile.constants, "UNROLLED": False}, when, "float32"),
    ]
    return [
        Kernel(
            shader,
            grid=(f"tiles * cdiv({rows}, TILE_M)",),
            params={**params, **_tile_params(extents)},
            constants={**shape, "KIND": repr(kind), **constants},
            layouts=layouts,
            vectors=vectors,
            unused=unused,
            when=condition,
            precision=precision,
        )
        for shader, shape, condition, precision in choices
    ]


def _tile_params(extents: tuple[str, str, str]) -> dict[str, Param]:
    _, columns, depth = extents
    return {"steps": u32(f"cdiv({depth}, DEPTH)"), "tiles": u32(f"cdiv({columns}, TILE_N)")}
