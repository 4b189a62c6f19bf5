"""Conformance cases of joining and padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from nybble.testing import Case

__all__ = ["CASES"]

_RNG = np.random.default_rng(36)
_ALL = ("float32", "int32", "int8", "bool")


def _of(dtype: str, *shape: int) -> Any:
    if dtype == "float32":
        return np.asarray(_RNG.normal(0, 1, shape), np.float32)
    if dtype == "bool":
        return np.asarray(_RNG.integers(0, 2, shape) == 1)
    return np.asarray(_RNG.integers(-100, 100, shape), dtype)


def _joined(dtype: str, dim: int, *shapes: tuple[int, ...]) -> Case:
    tensors = {f"x_{i}": _of(dtype, *shape) for i, shape in enumerate(shapes)}
    return Case("nybble.concat.default", {**tensors, "dim": dim}, id=f"{dtype}-dim{dim}")


_JOINED: list[tuple[int, list[tuple[int, ...]]]] = [
    (0, [(3, 5), (2, 5)]),
    (1, [(2, 3, 5), (2, 1, 5), (2, 7, 5)]),
    (-1, [(2, 3, n) for n in (1, 2, 3, 5, 7, 1, 4)]),
    (0, [(1,)]),
    (1, [(2, 0, 3), (2, 5, 3)]),
    (1, [(0, 2), (0, 3)]),
    (5, [(2, 1, 2, 3, 2, 3, 2, 2), (2, 1, 2, 3, 2, 2, 2, 2)]),
]

CASES = [_joined(dtype, dim, *shapes) for dtype in _ALL for dim, shapes in _JOINED]
CASES += [
    Case("aten.constant_pad_nd.default", {"x": _of(dtype, *shape), "pad": pad, "value": value},
         id=f"{dtype}-{value:g}")
    for dtype in _ALL
    for shape, pad, value in [
        ((1, 2, 3, 5), (1, 2, 0, 1), 1),
        ((3, 5), (2, 3), 0),
        ((3, 5), (), 0),
        ((3, 5, 7), (-1, 2, -2, -1, 3, 0), 1),
        ((7,), (-3, -2), 0),
        ((0, 3), (1, 1, 2, 0), 1),
        ((), (), 0),
        ((2, 1, 2, 3, 2, 1, 2, 3), (1, 0, 0, 1, 1, 1, 0, 0, 0, 2), 1),
    ]
]  # fmt: skip
CASES += [
    Case("aten.constant_pad_nd.default", {"x": _of("float32", 3, 5), "pad": (1, 1), "value": v},
         id=f"{v}")
    for v in (float("-inf"), -1.797e308, 0.1)
]  # fmt: skip
CASES += [
    Case("aten.constant_pad_nd.default", {"x": _of("int8", 3, 5), "pad": (1, 1), "value": -128}),
    *(
        Case(
            "aten.constant_pad_nd.default",
            {"x": _of("bool", 3, 5), "pad": (1, 1), "value": v},
            id=f"bool-{v}",
        )
        for v in (-2.0, 256)
    ),
]
