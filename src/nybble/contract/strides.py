"""Index arithmetic of strided reads: the axes that a kernel walks, as plain tuples.

An axis is ``(size, stride of each operand...)``, innermost first. Axes of one element are left
out and neighbours that every operand walks without a gap are merged, so kernels loop over few.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

__all__ = [
    "broadcast_axes", "broadcast_shape", "expanded_axes", "kept_axes", "permuted_axes",
    "reduced_axes", "sliced_axes",
]  # fmt: skip

Axis = tuple[int, ...]


def row_major(shape: Sequence[int]) -> list[int]:
    """Row-major strides of ``shape``, in elements."""
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


def broadcast_shape(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that ``shapes`` broadcast to, ``()`` of none; ValueError where they do not."""
    rank = max((len(s) for s in shapes), default=0)
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    result = []
    for sizes in zip(*padded, strict=True):
        wider = {size for size in sizes if size != 1}
        if len(wider) > 1:
            raise ValueError(
                f"shapes {' and '.join(str(list(s)) for s in shapes)} do not broadcast"
            )
        result.append(wider.pop() if wider else 1)
    return tuple(result)


def merged(axes: Iterable[Axis]) -> tuple[Axis, ...]:
    """``axes``, outermost first, without idle ones and with neighbours merged; innermost first."""
    result: list[Axis] = []
    for size, *strides in axes:
        if size == 1:
            continue
        seamless = result and all(
            outer == inner * size for outer, inner in zip(result[-1][1:], strides, strict=True)
        )
        whole = size * result.pop()[0] if seamless else size
        result.append((whole, *strides))
    return tuple(reversed(result))


def broadcast_axes(*shapes: Sequence[int]) -> tuple[Axis, ...]:
    """The axes of an elementwise result, with the stride of each operand (0 where repeated)."""
    out = broadcast_shape(*shapes)
    columns = [_repeated_strides(shape, len(out)) for shape in shapes]
    return merged(zip(out, *columns, strict=True))


def _repeated_strides(shape: Sequence[int], rank: int) -> list[int]:
    strides = [0 if n == 1 else s for n, s in zip(shape, row_major(shape), strict=True)]
    return [0] * (rank - len(shape)) + strides


def expanded_axes(shape: Sequence[int], out: Sequence[int]) -> tuple[Axis, ...]:
    """The axes of ``out``, to which ``shape`` is repeated, with the input's strides."""
    return merged(zip(out, _repeated_strides(shape, len(out)), strict=True))


def permuted_axes(shape: Sequence[int], dims: Sequence[int]) -> tuple[Axis, ...]:
    """The axes of a permuted result, with the input's strides."""
    strides = row_major(shape)
    return merged((shape[d], strides[d]) for d in dims)


def sliced_axes(shape: Sequence[int], dim: int, step: int, out: Sequence[int]) -> tuple[Axis, ...]:
    """The axes of a slice along ``dim``, of shape ``out``, with the input's strides."""
    strides = row_major(shape)
    strides[dim] *= step
    return merged(zip(out, strides, strict=True))


def kept_axes(shape: Sequence[int], dims: Sequence[int]) -> tuple[Axis, ...]:
    """The axes that a reduction over ``dims`` keeps (none of them given: it keeps none)."""
    return _axes_where(shape, [i for i in range(len(shape)) if i not in _reduced(shape, dims)])


def reduced_axes(shape: Sequence[int], dims: Sequence[int]) -> tuple[Axis, ...]:
    """The axes that a reduction over ``dims`` runs along, with the input's strides."""
    return _axes_where(shape, _reduced(shape, dims))


def _reduced(shape: Sequence[int], dims: Sequence[int]) -> list[int]:
    return sorted({d % max(1, len(shape)) for d in dims}) if dims else list(range(len(shape)))


def _axes_where(shape: Sequence[int], dims: Sequence[int]) -> tuple[Axis, ...]:
    strides = row_major(shape)
    return merged((shape[d], strides[d]) for d in dims if d < len(shape))
