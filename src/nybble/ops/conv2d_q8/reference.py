"""Exact integer sums of 2-D convolutions over int8 codes.

Products are taken in float64, where every partial sum is an integer below 2**53.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nybble.contract.annotations import Array

__all__ = ["convolution_sums", "filters_of", "transposed_convolution_sums"]

Pair = Sequence[int]


def filters_of(weight: Array, kernel: Pair, group_channels: int) -> Array:
    """Filters ``[oc, kh, kw, icg]`` of rows whose padding columns are dropped."""
    columns = kernel[0] * kernel[1] * group_channels
    return weight[:, :columns].reshape(weight.shape[0], *kernel, group_channels)


def convolution_sums(
    x: Array,
    filters: Array,
    zero_point: int,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
) -> Array:
    """``sum((x - zero_point) * w)`` as float64 ``[n, oc, h_out, w_out]``; padding adds nothing.

    Args:
        x: int8 codes ``[n, ic, h, w]``.
        filters: int8 ``[oc, kh, kw, ic / groups]``.
        zero_point: the code of zero.
        stride: along height and width, like the next two.
        padding: positions added at each edge, holding zero.
        dilation: distance of neighbouring taps.
        groups: output channel ``o`` reads the channels of group ``o // (oc / groups)``.
    """
    n, channels, height, width = x.shape
    oc, kh, kw, _ = filters.shape
    rows = (height + 2 * padding[0] - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    columns = (width + 2 * padding[1] - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    edges = ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2)
    shifted = np.pad(x.astype(np.float64) - zero_point, edges)
    sums = np.zeros((n, groups, oc // groups, rows * columns))
    for i in range(kh):
        for j in range(kw):
            top, left = i * dilation[0], j * dilation[1]
            window = shifted[:, :, top :: stride[0], left :: stride[1]][:, :, :rows, :columns]
            grouped = window.reshape(n, groups, channels // groups, rows * columns)
            sums += _tap(filters, i, j, groups) @ grouped
    return sums.reshape(n, oc, rows, columns)


def transposed_convolution_sums(
    x: Array,
    filters: Array,
    zero_point: int,
    stride: Pair,
    padding: Pair,
    output_padding: Pair,
    dilation: Pair,
    groups: int,
) -> Array:
    """The sums of the transposed convolution, as float64 ``[n, oc, h_out, w_out]``.

    Input row ``i`` adds tap ``t`` to the output row ``i * stride - padding + t * dilation``.
    Arguments are those of :func:`convolution_sums`; ``output_padding`` extends the far edges.
    """
    n, channels, height, width = x.shape
    oc, kh, kw, _ = filters.shape
    spans = [(s - 1) * step + 1 for s, step in zip((height, width), stride, strict=True)]
    full = [
        span + d * (taps - 1) + extra
        for span, d, taps, extra in zip(spans, dilation, (kh, kw), output_padding, strict=True)
    ]
    shifted = x.astype(np.float64) - zero_point
    grouped = shifted.reshape(n, groups, channels // groups, height * width)
    sums = np.zeros((n, oc, *full))
    for i in range(kh):
        for j in range(kw):
            top, left = i * dilation[0], j * dilation[1]
            window = sums[:, :, top : top + spans[0], left : left + spans[1]]
            window[:, :, :: stride[0], :: stride[1]] += (
                _tap(filters, i, j, groups) @ grouped
            ).reshape(n, oc, height, width)
    return sums[:, :, padding[0] : full[0] - padding[0], padding[1] : full[1] - padding[1]]


def _tap(filters: Array, i: int, j: int, groups: int) -> Array:
    """One tap's matrix ``[groups, oc / groups, icg]``."""
    oc, _, _, depth = filters.shape
    return filters[:, i, j].astype(np.float64).reshape(groups, oc // groups, depth)
