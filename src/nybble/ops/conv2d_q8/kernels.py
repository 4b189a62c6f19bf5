"""The kernels of int8 convolutions, most specialized first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nybble.contract import CHANNELS4, Kernel, Layout, constant_layout, u32
from nybble.contract.annotations import Array
from nybble.ops.output_stage import FLUSHED, STAGE_CONSTANTS, STAGE_PARAMS
from nybble.ops.row_products import RowProduct, row_kernels
from nybble.ops.weight_words import quads_with_sums

__all__ = ["CONVOLUTION", "DEPTHWISE", "POINTWISE", "TRANSPOSED"]

Names = Mapping[str, Any]
_GEOMETRY = {
    f"{attribute.upper()}_{side}": f"{attribute}[{axis}]"
    for attribute in ("kernel", "stride", "padding", "dilation")
    for axis, side in enumerate("HW")
}

_SIZES = {name: u32(name) for name in ("h", "w", "h_out", "w_out")}


def _filters(weight: Array, names: Names) -> Array:
    """Filters ``[oc, taps, icg]`` of a weight stored one row an output channel."""
    taps = names["kernel"][0] * names["kernel"][1]
    depth = names["ic"] // names["groups"]
    return weight[:, : taps * depth].reshape(weight.shape[0], taps, depth)


def _depthwise_filters(weight: Array, names: Names) -> Array:
    """Filters ``[oc, taps, 1]`` of a weight stored ``[kh, kw, oc]``."""
    return weight.reshape(-1, weight.shape[2]).T[:, :, None]


_QUADS = constant_layout(
    "filter_quads", lambda weight, names: quads_with_sums(_filters(weight, names), names["groups"])
)
_DEPTHWISE_QUADS = constant_layout(
    "depthwise_quads",
    lambda weight, names: quads_with_sums(_depthwise_filters(weight, names), names["groups"]),
)


def _direct(weight: Layout, transposed: bool) -> Kernel:
    """Any convolution: one thread sums one output word, skipping taps that fall on padding."""
    return Kernel(
        "direct.wgsl",
        grid=("cdiv(words, THREADS)",),
        params={
            "words": u32("n * h_out * w_out * cdiv(oc, 4)"),
            **_SIZES,
            "quads_in": u32("cdiv(ic, 4)"),
            "oc": u32("oc"),
            **STAGE_PARAMS,
        },
        constants={
            "THREADS": 64,
            "TRANSPOSED": transposed,
            **_GEOMETRY,
            "GROUP_IN": "ic // groups",
            "GROUP_OUT": "oc // groups",
            "DEPTH": "cdiv(ic // groups, 4) if groups == 1 or ic // groups % 4 == 0 "
            "else (ic // groups + 2) // 4 + 1",
            "ONE_GROUP": "groups == 1 or oc // groups % 4 == 0",
            **STAGE_CONSTANTS,
        },
        layouts={"weight_scales": FLUSHED, "x": CHANNELS4, "weight": weight, "out": CHANNELS4},
        vectors={"weight": 4, "weight_scales": 4, "bias": 4},
        unused=frozenset({"weight_sums"}),
    )


def _depthwise(pixels_x: int, pixels_y: int, when: str) -> Kernel:
    """One thread sums a block of pixels of one channel word; small filters stay in registers."""
    return Kernel(
        "depthwise.wgsl",
        grid=("cdiv(items, THREADS)",),
        params={
            "items": u32(f"n * cdiv(h_out, {pixels_y}) * cdiv(w_out, {pixels_x}) * cdiv(oc, 4)"),
            **_SIZES,
            "quads": u32("cdiv(oc, 4)"),
            **STAGE_PARAMS,
        },
        constants={
            "THREADS": 64,
            "PIXELS_X": pixels_x,
            "PIXELS_Y": pixels_y,
            **_GEOMETRY,
            **STAGE_CONSTANTS,
        },
        layouts={"weight_scales": FLUSHED, **dict.fromkeys(("x", "weight", "out"), CHANNELS4)},
        vectors={"weight_scales": 4, "bias": 4},
        unused=frozenset({"weight_sums"}),
        when=f"kernel[0] * kernel[1] <= 25 and {when}",
    )


def _matrix(weight: Array, names: Names) -> Array:
    """Rows of every tap's channels, padded to words, for a filter of one group."""
    filters = _filters(weight, names)
    padded = np.pad(filters, ((0, 0), (0, 0), (0, -filters.shape[2] % 4)))
    return padded.reshape(filters.shape[0], -1)


_POINTWISE = RowProduct(
    name="pointwise",
    matrix=_matrix,
    rows="n * h * w",
    depth="ic",
    features="oc",
    when="kernel == stride == (1, 1) and padding == (0, 0) and groups == 1",
)
_UNFOLDED = RowProduct(
    name="unfolded",
    matrix=_matrix,
    rows="n * h_out * w_out",
    depth="ic",
    features="oc",
    when="groups == 1",
    taps="kernel[0] * kernel[1]",
    params={name: name for name in ("h", "w", "h_out", "w_out")},
    constants={"IMAGE": True, **_GEOMETRY},
)
_ANY = _direct(_QUADS, transposed=False)
CONVOLUTION = [*row_kernels(_UNFOLDED), _ANY]
POINTWISE = [*row_kernels(_POINTWISE), _ANY]
DEPTHWISE = [
    _depthwise(4, 2, "software"),
    _depthwise(2, 2, "not software"),
    _direct(_DEPTHWISE_QUADS, transposed=False),
]
TRANSPOSED = [_direct(_QUADS, transposed=True)]
