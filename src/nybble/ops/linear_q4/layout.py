"""W_4X8: 4-bit codes in blocks of 4 columns by 8 rows, one block a vec4 of words.

Byte j of word w of block ``column // 4 * blocks_of_rows + row // 8`` holds column j of the
block: the low nibble is row 2w, the high nibble row 2w + 1. A thread that reads one block has
four inputs of eight output channels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nybble.contract import Array, DType, Layout

__all__ = ["W_4X8", "W_4X8_HIGH_FIRST", "codes_of_bytes"]

_ZERO_PAIR = 0x88
"""Two codes 8, which stand for the value 0: what padding holds."""


def codes_of_bytes(packed: Array, columns: int, *, high_first: bool = False) -> Array:
    """The codes 0..15 of ``packed`` uint8 ``[n, bytes]``, as uint8 ``[n, columns]``."""
    low, high = packed & 15, packed >> 4
    first, second = (high, low) if high_first else (low, high)
    rows, row_bytes = packed.shape
    return np.stack([first, second], axis=-1).reshape(rows, 2 * row_bytes)[:, :columns]


def _blocks(shape: Sequence[int]) -> tuple[int, int]:
    """Blocks along columns (two codes a byte) and along rows."""
    rows, row_bytes = shape
    return -(-row_bytes // 2), -(-rows // 8)


def _words(dtype: DType, shape: Sequence[int], names: Mapping[str, Any]) -> int:
    across, down = _blocks(shape)
    return 4 * across * down


def _swapped(packed: Array) -> Array:
    return (packed << 4) | (packed >> 4)


def _pack(packed: Array, names: Mapping[str, Any]) -> Array:
    across, down = _blocks(packed.shape)
    padded = np.full((down * 8, across * 2), _ZERO_PAIR, np.uint8)
    padded[: packed.shape[0], : packed.shape[1]] = packed
    even, odd = padded[0::2], padded[1::2]
    pairs = np.empty((*even.shape, 2), np.uint8)
    pairs[..., 0] = (even & 15) | (odd << 4)
    pairs[..., 1] = (even >> 4) | (odd & 0xF0)
    words = pairs.reshape(down, 4, across * 4).view(np.uint32)
    return np.ascontiguousarray(words.transpose(2, 0, 1)).reshape(-1)


def _unpack(words: Array, dtype: DType, shape: Sequence[int]) -> Array:
    across, down = _blocks(shape)
    blocks = words[: 4 * across * down].reshape(across, down, 4)
    words_of_rows = np.ascontiguousarray(blocks.transpose(1, 2, 0)).reshape(-1)
    pairs = words_of_rows.view(np.uint8).reshape(down * 4, across * 4)
    first, second = pairs[:, 0::2], pairs[:, 1::2]
    padded = np.empty((down * 8, across * 2), np.uint8)
    padded[0::2] = (first & 15) | (second << 4)
    padded[1::2] = (first >> 4) | (second & 0xF0)
    return np.ascontiguousarray(padded[: shape[0], : shape[1]])


W_4X8 = Layout("w4x8", _words, _pack, _unpack)
"""uint8 ``[n, bytes]`` whose low nibbles are the even columns. Rows and columns beyond the
tensor hold code 8; every nibble of the tensor is kept, those of padding columns too."""

W_4X8_HIGH_FIRST = Layout(
    "w4x8_high_first",
    _words,
    lambda packed, names: _pack(_swapped(packed), names),
    lambda words, dtype, shape: _swapped(_unpack(words, dtype, shape)),
)
"""The same words from uint8 ``[n, bytes]`` whose high nibbles are the even columns."""
