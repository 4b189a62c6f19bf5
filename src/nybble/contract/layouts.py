"""How a tensor's elements lie in 32-bit words: a planner's choice, apart from shape and dtype.

A kernel declares the layout in which it reads and writes each tensor; the planner inserts
conversions at borders. Constants are packed once, on the host, by the layout's ``pack``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .annotations import Array
from .dtypes import DType

__all__ = ["CHANNELS4", "ROW_MAJOR", "Layout", "channel_axis", "constant_layout"]

Names = Mapping[str, Any]
Words = np.ndarray[Any, np.dtype[np.uint32]]


@dataclass(frozen=True)
class Layout:
    """A named arrangement of elements in words.

    ``words(dtype, shape, names)`` is the size in words, ``pack(array, names)`` the words.
    ``unpack`` is None for layouts in which only constants are kept (kernels' weight tiles).
    ``names`` holds the axes and attributes that the call binds.
    """

    name: str
    words: Callable[[DType, Sequence[int], Names], int]
    pack: Callable[[Array, Names], Words]
    unpack: Callable[[Words, DType, Sequence[int]], Array] | None = None

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


def channel_axis(rank: int) -> int:
    """The axis that :data:`CHANNELS4` keeps innermost: 1 for images, the last otherwise."""
    return 1 if rank == 4 else rank - 1


def as_words(data: Array) -> Words:
    """The bytes of an array, zero-padded to whole words."""
    raw = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    short = -raw.size % 4
    if short:
        raw = np.concatenate([raw, np.zeros(short, np.uint8)])
    return raw.view(np.uint32)


def _row_major_words(dtype: DType, shape: Sequence[int], names: Names) -> int:
    return -(-math.prod(shape) * dtype.itemsize // 4)


def _row_major_unpack(words: Words, dtype: DType, shape: Sequence[int]) -> Array:
    count = math.prod(shape)
    return words.view(np.uint8)[: count * dtype.itemsize].view(dtype.numpy).reshape(shape)


def _channels4_shape(shape: Sequence[int]) -> tuple[int, ...]:
    axis = channel_axis(len(shape))
    outer = tuple(s for i, s in enumerate(shape) if i != axis)
    return (*outer, -(-shape[axis] // 4))


def _channels4_words(dtype: DType, shape: Sequence[int], names: Names) -> int:
    return math.prod(_channels4_shape(shape))


def _channels4_pack(data: Array, names: Names) -> Words:
    moved = np.moveaxis(data, channel_axis(data.ndim), -1)
    channels = moved.shape[-1]
    padded = np.zeros((*moved.shape[:-1], -(-channels // 4) * 4), data.dtype)
    padded[..., :channels] = moved
    return as_words(padded)


def _channels4_unpack(words: Words, dtype: DType, shape: Sequence[int]) -> Array:
    inner = _channels4_shape(shape)
    count = math.prod(inner) * 4
    rows = words.view(np.uint8)[:count].view(dtype.numpy).reshape(*inner[:-1], inner[-1] * 4)
    axis = channel_axis(len(shape))
    return np.ascontiguousarray(np.moveaxis(rows[..., : shape[axis]], -1, axis))


ROW_MAJOR = Layout(
    "row_major", _row_major_words, lambda data, names: as_words(data), _row_major_unpack
)
"""Elements in row-major order; bytes packed four to a word, the tail zero-padded."""

CHANNELS4 = Layout("channels4", _channels4_words, _channels4_pack, _channels4_unpack)
"""int8 only: the channel axis innermost, padded to words of four. Padding lanes may hold any
byte, so a kernel must multiply them by zero weights or leave them out."""


def constant_layout(name: str, pack: Callable[[Array, Names], Array]) -> Layout:
    """A layout for constants alone, given by what ``pack`` makes of the array.

    Its size is known only by packing, so ``words`` packs zeros of the same shape.
    """

    def words(dtype: DType, shape: Sequence[int], names: Names) -> int:
        return as_words(pack(np.zeros(tuple(shape), dtype.numpy), names)).size

    return Layout(name, words, lambda data, names: as_words(pack(data, names)))
