"""Images resized and sampled, and the anchor points of their cells."""

from typing import Any

import numpy as np

from nybble.contract import Array, Float32, Kernel, f32, op, rule, u32

__all__ = ["grid_priors", "grid_sampler", "upsample_bilinear", "upsample_nearest"]

Shape = tuple[int, ...]


def _resized_shape(x: Shape, output_size: Shape | None, scale_factors: Any, **_: Any) -> Shape:
    height, width = (
        output_size
        if output_size is not None
        else (int(x[2] * scale_factors[0]), int(x[3] * scale_factors[1]))
    )
    return (*x[:2], height, width)


def _factor(axis: int, corners: bool = False) -> str:
    """Input pixels an output pixel: by the given factor where there is one, as in PyTorch."""
    inside, beyond = f"x[{axis}]", f"out[{axis}]"
    if corners:
        return f"({inside} - 1) / ({beyond} - 1) if {beyond} > 1 else 0.0"
    given = f"1 / scale_factors[{axis - 2}]"
    return f"{given} if scale_factors is not None else {inside} / max(1, {beyond})"


def _resize_kernel(*, linear: bool, corners: bool = False, when: str = "True") -> Kernel:
    return Kernel(
        "upsample.wgsl",
        grid=("cdiv(elements, THREADS)",),
        params={
            "elements": u32("count"),
            "height": u32("x[2]"),
            "width": u32("x[3]"),
            "out_height": u32("max(1, out[2])"),
            "out_width": u32("max(1, out[3])"),
            "factor_height": f32(_factor(2, corners)),
            "factor_width": f32(_factor(3, corners)),
        },
        constants={"THREADS": 64, "LINEAR": linear, "CORNERS": corners},
        when=when,
    )


_RULES = [
    rule("(output_size is None) != (scale_factors is None)",
         "either the size or the factors must be given"),
    rule("output_size is None or (len(output_size) == 2 and min(output_size) >= 1)",
         "the size must be a height and a width"),
    rule("scale_factors is None or (len(scale_factors) == 2 and min(scale_factors) > 0)",
         "the factors must be one for the height and one for the width"),
    rule("h >= 1 and w >= 1", "the image must have a pixel"),
]  # fmt: skip


def _factors(x: Array, out: Shape, scale_factors: Any) -> list[np.float32]:
    if scale_factors is not None:
        return [np.float32(1 / s) for s in scale_factors]
    return [np.float32(n / max(1, m)) for n, m in zip(x.shape[2:], out[2:], strict=True)]


@op(
    "aten.upsample_nearest2d.vec",
    out=Float32[Array, "..."],
    out_variants=["aten.upsample_nearest2d.vec_out"],
    rules=_RULES,
    kernels=[_resize_kernel(linear=False)],
    operations="0",
    shape=_resized_shape,
    exact=True,
)
def upsample_nearest(
    x: Float32[Array, "n c h w"],
    output_size: tuple[int, ...] | None = None,
    scale_factors: tuple[float, ...] | None = None,
) -> Array:
    """The image resized: each pixel is the input's at floor(place * input / output), in float32.

    A given factor's reciprocal takes the place of the quotient.
    """
    shape = _resized_shape(x.shape, output_size, scale_factors)
    rows, columns = (
        np.minimum((np.arange(m).astype(np.float32) * f).astype(np.int64), n - 1)
        for m, n, f in zip(shape[2:], x.shape[2:], _factors(x, shape, scale_factors), strict=True)
    )
    return np.ascontiguousarray(x[:, :, rows[:, None], columns])


def _blended(low: Array, high: Array, share: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(low * (1 - share) + high * share)


@op(
    "aten.upsample_bilinear2d.vec",
    out=Float32[Array, "..."],
    out_variants=["aten.upsample_bilinear2d.vec_out"],
    rules=_RULES,
    kernels=[
        _resize_kernel(linear=True, corners=True, when="align_corners"),
        _resize_kernel(linear=True, when="not align_corners"),
    ],
    operations="8 * count",
    shape=_resized_shape,
)
def upsample_bilinear(
    x: Float32[Array, "n c h w"],
    output_size: tuple[int, ...] | None = None,
    align_corners: bool = False,
    scale_factors: tuple[float, ...] | None = None,
) -> Array:
    """The image resized, each pixel a mean of its four neighbours weighted by their distance.

    With ``align_corners`` the corner pixels' centres coincide, else the images' borders.
    """
    shape = _resized_shape(x.shape, output_size, scale_factors)
    taps = []
    for m, n, f in zip(shape[2:], x.shape[2:], _factors(x, shape, scale_factors), strict=True):
        places = np.arange(m, dtype=np.float32)
        if align_corners:
            at = places * np.float32((n - 1) / (m - 1) if m > 1 else 0)
        else:
            at = np.maximum((places + np.float32(0.5)) * f - np.float32(0.5), np.float32(0))
        low = np.minimum(at.astype(np.int64), n - 1)
        taps.append((low, np.minimum(low + 1, n - 1), np.clip(at - low, 0, 1)))
    (top, bottom, down), (left, right, across) = taps
    wide = x.astype(np.float64)
    upper = _blended(wide[:, :, top][..., left], wide[:, :, top][..., right], across)
    lower = _blended(wide[:, :, bottom][..., left], wide[:, :, bottom][..., right], across)
    return _blended(upper, lower, down[:, None]).astype(np.float32)


@op(
    "aten.grid_sampler_2d.default",
    out=Float32[Array, "n c oh ow"],
    out_variants=["aten.grid_sampler_2d.out"],
    rules=[
        rule("interpolation == 0", "only bilinear interpolation (0) is supported"),
        rule("padding == 1", "only border padding (1) is supported"),
        rule("align_corners", "only aligned corners are supported"),
        rule("h >= 1 and w >= 1", "the image must have a pixel"),
    ],
    kernels=[
        Kernel(
            "grid_sample.wgsl",
            grid=("cdiv(elements, THREADS)",),
            params={
                "elements": u32("count"),
                "channels": u32("max(1, c)"),
                "pixels": u32("max(1, oh * ow)"),
                "height": u32("h"),
                "width": u32("w"),
            },
            constants={"THREADS": 64},
        )
    ],
    operations="8 * count",
)
def grid_sampler(
    x: Float32[Array, "n c h w"],
    grid: Float32[Array, "n oh ow 2"],
    interpolation: int,
    padding: int,
    align_corners: bool,
) -> Array:
    """The image at (x, y) places in [-1, 1], its corner pixels' centres; outside, at the border.

    NaN counts as -1, and so does an infinite place along an axis of one pixel.
    """
    _, _, h, w = x.shape
    last = np.array([w - 1, h - 1], np.float32)
    with np.errstate(all="ignore"):
        at = np.clip((grid + np.float32(1)) * np.float32(0.5) * last, np.float32(0), last)
    at = np.where(np.isnan(at), np.float32(0), at)
    low = at.astype(np.int64)
    high = np.minimum(low + 1, [w - 1, h - 1])
    across, down = ((at - low)[:, None, ..., i] for i in (0, 1))
    planes: Array = np.indices(x.shape[:2])[..., None, None]
    wide = x.astype(np.float64)

    def pixel(rows: Array, columns: Array) -> Array:
        return np.asarray(wide[(*planes, rows[:, None], columns[:, None])])

    upper = _blended(pixel(low[..., 1], low[..., 0]), pixel(low[..., 1], high[..., 0]), across)
    lower = _blended(pixel(high[..., 1], low[..., 0]), pixel(high[..., 1], high[..., 0]), across)
    return _blended(upper, lower, down).astype(np.float32)


@op(
    "et_vk.grid_priors.default",
    out=Float32[Array, "cells 2"],
    derived={"cells": "x[-2] * x[-1] if len(x) >= 2 else 0"},
    rules=[rule("len(x) >= 2", "the tensor must have a height and a width")],
    kernels=[
        Kernel(
            "grid_priors.wgsl",
            grid=("cdiv(elements, THREADS)",),
            params={
                "elements": u32("count"),
                "width": u32("max(1, x[-1])"),
                "offset": f32("offset"),
                "stride": f32("stride"),
            },
            constants={"THREADS": 64},
            unused=frozenset({"x"}),
        )
    ],
    operations="2 * count",
)
def grid_priors(x: Float32[Array, "..."], stride: int, offset: float) -> Array:
    """((column + offset) * stride, (row + offset) * stride) of each cell of x's last two axes."""
    rows, columns = np.indices(x.shape[-2:]).reshape(2, -1).astype(np.float64)
    return ((np.stack([columns, rows], axis=-1) + offset) * stride).astype(np.float32)
