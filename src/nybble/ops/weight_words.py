"""Packing of int8 filters for kernels that multiply words of four channels."""

from __future__ import annotations

import numpy as np

from nybble.contract.annotations import Array

__all__ = ["quads_with_sums", "words_per_tap"]


def words_per_tap(depth: int, groups: int) -> int:
    """Words of input channels that one tap of a filter of ``depth`` channels may touch.

    A group whose channels do not fill words begins anywhere in a word.
    """
    return -(-depth // 4) if groups == 1 or depth % 4 == 0 else (depth + 2) // 4 + 1


def quads_with_sums(filters: Array, groups: int) -> Array:
    """Words ``[quad, tap, 1 + words, 4]``: each tap's weight sums, then its weights.

    The last axis is the output channel within its quad. Weights lie in the byte lanes of the
    input words that hold their channels; all other lanes are zero.

    Args:
        filters: int8 ``[oc, taps, depth]``.
        groups: output channel ``o`` reads channels from ``o // (oc / groups) * depth`` on.
    """
    oc, taps, depth = filters.shape
    quads, words = -(-oc // 4), words_per_tap(depth, groups)
    lanes = np.zeros((quads * 4, taps, words * 4), np.int8)
    starts = np.arange(oc) // max(1, oc // groups) * depth % 4
    for start in np.unique(starts):
        chosen = np.flatnonzero(starts == start)
        lanes[chosen, :, start : start + depth] = filters[chosen]
    sums = np.zeros((quads * 4, taps, 1), np.int32)
    sums[:oc, :, 0] = filters.sum(axis=2, dtype=np.int32)
    rows = np.concatenate([sums, lanes.view("<i4")], axis=2)
    return np.ascontiguousarray(rows.reshape(quads, 4, taps, words + 1).transpose(0, 2, 3, 1))
