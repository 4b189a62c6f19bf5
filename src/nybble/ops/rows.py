"""Declares kernels that reduce rows and write them again (std/rows.wgsl)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from nybble.contract import Kernel, Param, u32

__all__ = ["row_kernels"]

Constant = int | float | bool | str


def row_kernels(
    shader: str,
    *,
    rows: str,
    length: str,
    params: Mapping[str, Param] | None = None,
    constants: Mapping[str, Constant] | None = None,
    unused: Collection[str] = (),
) -> list[Kernel]:
    """A kernel with a workgroup for each long row, and one with a thread for each short row.

    ``rows`` and ``length`` are expressions: how many rows there are, and of how many elements.
    """
    fields = {"rows": u32(rows), "length": u32(length), **(params or {})}
    fixed = dict(constants or {})
    return [
        Kernel(
            shader,
            grid=("rows",),
            params=fields,
            constants={"WIDE": True, "THREADS": f"256 if {length} > 2048 else 64", **fixed},
            unused=frozenset(unused),
            when=f"{length} > (1024 if software else 64)",
        ),
        Kernel(
            shader,
            grid=("cdiv(rows, THREADS)",),
            params=fields,
            constants={"WIDE": False, "THREADS": 64, **fixed},
            unused=frozenset(unused),
        ),
    ]
