"""Conformance cases of softmax and its logarithm."""

from __future__ import annotations

from typing import Any

import numpy as np

from nybble.testing import Case

__all__ = ["CASES"]

_RNG = np.random.default_rng(33)
_NAN, _INFINITY = float("nan"), float("inf")


def _floats(*shape: int, spread: float = 3) -> Any:
    return np.asarray(_RNG.normal(0, spread, shape), np.float32)


_SPECIAL = np.array(
    [
        [1, 2, 3, 4, 5],
        [1, _NAN, 3, 4, 5],
        [_NAN, 1, 2, 3, 4],
        [1, _INFINITY, 3, 4, 5],
        [1, -_INFINITY, 3, -_INFINITY, 5],
        [-_INFINITY] * 5,
        [3e38, -3e38, 0, 3e38, 1],
        [1e-40, 0, -0.0, 1e-38, -1e-40],
    ],
    np.float32,
)

CASES = [
    Case(name, {"x": x, "dim": dim, "half_to_float": False}, id=f"{label}dim{dim}")
    for name in ("aten._softmax.default", "aten._log_softmax.default")
    for x, dim, label in [
        (_floats(2, 3, 5), -1, ""),
        (_floats(2, 3, 5), 0, ""),
        (_floats(2, 3, 5), 1, ""),
        (_floats(7), 0, ""),
        (_floats(1), -1, ""),
        (_floats(), 0, ""),
        (_floats(), -1, ""),
        (_floats(0, 3), 1, ""),
        (_floats(3, 0), 1, ""),
        (_floats(2, 1, 3, 2, 1, 2, 3, 2), 5, ""),
        (_floats(67, 11), 1, ""),
        (_floats(3, 1031), 1, ""),
        (_floats(1031, 3), 0, ""),
        (_floats(2, 5003), 1, ""),
        (_floats(5, 37, spread=100), 1, "wide-"),
        (_SPECIAL, 1, "special-"),
        (_SPECIAL, 0, "special-"),
    ]
]
