"""Conformance cases of sums, means and extremes."""

from __future__ import annotations

from typing import Any

import numpy as np

from nybble.testing import Case

__all__ = ["CASES"]

_RNG = np.random.default_rng(22)
_SUMS = ("sum.dim_IntList", "mean.dim")
_EXTREMES = ("amax.default", "amin.default")


def _floats(*shape: int) -> Any:
    return _RNG.normal(0.25, 1, shape).astype(np.float32)


def _with(*values: float) -> Any:
    return np.array([[1, *values, 2], [3, 4, *values]], np.float32)


_NAN, _INFINITY = float("nan"), float("inf")
_ANY: list[tuple[Any, Any, bool]] = [
    (_floats(2, 3, 5, 7), (2, 3), True),
    (_floats(2, 3, 5, 7), (-1, -2), False),
    (_floats(2, 3, 5, 7), (1,), False),
    (_floats(2, 3, 5, 7), (0, 2), False),
    (_floats(2, 3, 5, 7), (1, 3), True),
    (_floats(2, 3, 5, 7), (), False),
    (_floats(2, 3, 5, 7), (0, 1, 2, 3), True),
    (_floats(2, 3, 2, 3, 2, 3, 2, 3), (0, 2, 4, 6), False),
    (_floats(2, 3, 2, 3, 2, 3, 2, 3), (1, 3, 5, 7), False),
    (_floats(1, 5, 1), (0, 2), False),
    (_floats(11), (0,), False),
    (_floats(1), (0,), True),
    (_floats(), (), False),
    (_floats(), (-1,), False),
    (_floats(3, 331), (1,), False),
    (_floats(331, 3), (0,), False),
    (_floats(2, 5003), (1,), False),
    (_floats(5003, 2), (0,), True),
    (_floats(0, 3), (1,), False),
    (_with(_NAN), (1,), False),
    (_with(_INFINITY), (1,), False),
    (_with(_INFINITY, -_INFINITY), (0,), True),
]

CASES = [
    Case(f"aten.{name}", {"x": x, "dim": dim, "keepdim": keepdim}, id=f"over{len(dim)}")
    for name in (*_SUMS, *_EXTREMES)
    for x, dim, keepdim in _ANY
    if x.size or name in _SUMS
]
CASES += [
    Case(f"aten.{name}", {"x": x, "dim": dim}, id="empty-or-all")
    for name in _SUMS
    for x, dim in [(_floats(3, 0), (1,)), (_floats(3, 5), None), (_floats(0, 3), (0,))]
]

_TIES = _RNG.integers(0, 3, (5, 37)).astype(np.float32)
_NANS = _floats(3, 331)
_NANS[1, 200] = _NANS[1, 17] = _NANS[2, 330] = _NAN
CASES += [
    Case(f"aten.{name}.default", {"x": x, "dim": dim, "keepdim": keepdim}, id=f"dim{dim}")
    for name in ("argmax", "argmin")
    for x, dim, keepdim in [
        (_floats(2, 3, 5), -1, False),
        (_floats(2, 3, 5), 0, True),
        (_floats(2, 3, 5), 1, False),
        (_floats(2, 3, 5), None, False),
        (_floats(2, 3), None, True),
        (_floats(11), 0, False),
        (_floats(1), 0, True),
        (_floats(), 0, False),
        (_floats(), None, False),
        (_floats(2, 5003), 1, False),
        (_floats(5003, 2), 0, False),
        (_TIES, 1, False),
        (_TIES, None, False),
        (np.zeros((2, 5003), np.float32), 1, False),
        (_NANS, 1, False),
        (_NANS, 0, False),
        (_with(_INFINITY, -_INFINITY), 1, False),
        (_floats(2, 1, 2, 3, 2, 1, 2, 3), 3, False),
    ]
]
CASES += [
    Case(
        "aten.any.dims",
        {"x": np.asarray(_RNG.random(shape) < share), "dims": dims, "keepdim": keepdim},
    )
    for shape, share, dims, keepdim in [
        ((2, 3, 5, 7), 0.1, (1, 3), True),
        ((2, 3, 5, 7), 0.1, (-1,), False),
        ((11, 3), 0.2, (0,), False),
        ((11,), 0.0, None, False),
        ((11,), 0.2, None, True),
        ((), 0.5, None, False),
        ((3, 0), 0.5, (1,), False),
        ((0, 3), 0.5, (1,), False),
        ((2, 3, 2, 3, 2, 3, 2, 3), 0.05, (0, 2, 4, 6), False),
    ]
]
