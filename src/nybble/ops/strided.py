"""Declares the uniform fields of kernels that walk merged axes (see nybble.contract.strides)."""

from __future__ import annotations

from collections.abc import Sequence

from nybble.contract import Param, u32

__all__ = ["MOST_AXES", "axis_params"]

MOST_AXES = 8
"""Rank up to which tensors are taken: the file format's own limit."""


def axis_params(
    axes: str, size: str, strides: Sequence[str], most: int = MOST_AXES
) -> dict[str, Param]:
    """Fields ``SIZE_0..`` and, for each operand, ``STRIDE_0..`` for the axes that ``axes`` names.

    ``axes`` is a derived axis tuple, innermost first; fields beyond its length are 0, and a
    kernel specialized for ``len(axes)`` does not read them. Negative strides wrap as u32 do.
    """
    return {
        f"{name}_{i}": u32(f"{axes}[{i}][{column}] % 2**32 if len({axes}) > {i} else 0")
        for column, name in enumerate((size, *strides))
        for i in range(most)
    }
