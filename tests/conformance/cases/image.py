"""Conformance cases of resizing and sampling."""

from __future__ import annotations

from typing import Any

import numpy as np

from nybble.testing import Case

__all__ = ["CASES"]

_RNG = np.random.default_rng(37)


def _floats(*shape: int) -> Any:
    return _RNG.normal(0, 1, shape).astype(np.float32)


_SIZES: list[tuple[tuple[int, ...], Any, Any]] = [
    ((1, 2, 3, 5), None, (2.0, 2.0)),
    ((2, 3, 3, 5), (7, 11), None),
    ((1, 2, 7, 11), (3, 5), None),
    ((1, 2, 5, 7), None, (1.5, 0.6)),
    ((1, 1, 1, 1), (3, 2), None),
    ((1, 1, 3, 5), (1, 1), None),
    ((0, 1, 3, 5), (2, 2), None),
]

CASES = [
    Case(
        "aten.upsample_nearest2d.vec",
        {"x": _floats(*shape), "output_size": size, "scale_factors": factors},
        id="size" if size else "factors",
    )
    for shape, size, factors in _SIZES
]
CASES += [
    Case(
        "aten.upsample_bilinear2d.vec",
        {"x": _floats(*shape), "output_size": size, "align_corners": corners,
         "scale_factors": factors},
        id=f"{'size' if size else 'factors'}-{'corners' if corners else 'borders'}",
    )
    for shape, size, factors in _SIZES
    for corners in (False, True)
]  # fmt: skip
CASES += [
    Case(
        "aten.grid_sampler_2d.default",
        {"x": _floats(n, c, h, w), "grid": _floats(n, oh, ow, 2), "interpolation": 0, "padding": 1,
         "align_corners": True},
    )
    for n, c, h, w, oh, ow in [(2, 3, 5, 7, 3, 11), (1, 1, 1, 1, 2, 3), (1, 2, 3, 1, 1, 5),
                               (0, 2, 3, 5, 2, 2)]
]  # fmt: skip
_ODD = np.array([np.nan, np.inf, -np.inf, 3e38, -1, 1, 0, -0.5], np.float32)
CASES += [
    Case(
        "aten.grid_sampler_2d.default",
        {"x": _floats(1, 2, *size), "grid": np.stack(np.meshgrid(_ODD, _ODD), -1)[None],
         "interpolation": 0, "padding": 1, "align_corners": True},
        id="odd-places",
    )
    for size in [(5, 7), (1, 3), (1, 1)]
]  # fmt: skip
CASES += [
    Case("et_vk.grid_priors.default", {"x": _floats(*shape), "stride": 8, "offset": 0.5})
    for shape in [(1, 3, 5, 7), (3, 2), (1, 1), (2, 0, 3)]
]
