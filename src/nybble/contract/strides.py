"""Index arithmetic of strided reads: the axes that a kernel walks, as plain tuples.

An axis is ``(size, stride of each operand...)``, innermost first. Axes of one element are left
out and neighbours that every operand walks without a gap are merged, so kernels loop over few.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

__all__ = [
    "broadcast_axes", "broadcast_shape", "expanded_axes", "flipped_axes", "flipped_offset",
    "gathered_axes", "kept_axes", "permuted_axes", "reduced_axes", "repeated_axes",
    "sliced_axes", "unfolded_axes",
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


def gathered_axes(shape: Sequence[int], dim: int, index: Sequence[int]) -> tuple[Axis, ...]:
    """The axes of indices along ``dim``, with the input's strides but 0 along that axis.

    ValueError where another axis of the indices is longer than the input's.
    """
    shape, index = (tuple(s) or (1,) for s in (shape, index))
    at = dim % len(shape)
    if len(shape) != len(index) or any(
        i > s for k, (s, i) in enumerate(zip(shape, index, strict=True)) if k != at
    ):
        raise ValueError(f"indices {list(index)} do not fit {list(shape)} along axis {dim}")
    strides = row_major(shape)
    strides[at] = 0
    return merged(zip(index, strides, strict=True))


def flipped_axes(shape: Sequence[int], dims: Sequence[int]) -> tuple[Axis, ...]:
    """The axes of a tensor walked backwards along ``dims``: strides there are negative."""
    gone = {d % max(1, len(shape)) for d in dims}
    strides = [-s if i in gone else s for i, s in enumerate(row_major(shape))]
    return merged(zip(shape, strides, strict=True))


def flipped_offset(shape: Sequence[int], dims: Sequence[int]) -> int:
    """The offset of the first element of a flipped tensor."""
    gone = {d % max(1, len(shape)) for d in dims}
    return sum(
        (max(1, n) - 1) * s
        for i, (n, s) in enumerate(zip(shape, row_major(shape), strict=True))
        if i in gone
    )


def repeated_axes(shape: Sequence[int], repeats: Sequence[int]) -> tuple[Axis, ...]:
    """The axes of a tensor repeated along each axis, with the input's strides."""
    whole = (1,) * (len(repeats) - len(shape)) + tuple(shape)
    pairs = zip(repeats, whole, row_major(whole), strict=True)
    return merged(axis for count, size, stride in pairs for axis in ((count, 0), (size, stride)))


def unfolded_axes(shape: Sequence[int], dim: int, size: int, step: int) -> tuple[Axis, ...]:
    """The axes of windows of ``size`` along ``dim``, one every ``step``; the window is last."""
    strides = row_major(shape)
    if not shape:
        return merged([(size, 1)])
    at = dim % len(shape)
    sizes = [(n - size) // step + 1 if i == at else n for i, n in enumerate(shape)]
    walked = [s * step if i == at else s for i, s in enumerate(strides)]
    return merged(zip((*sizes, size), (*walked, strides[at]), strict=True))


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
