"""Conformance cases of embeddings, gathers and selections by index."""

from __future__ import annotations

from typing import Any

import numpy as np

from nybble.testing import Case

__all__ = ["CASES"]

_RNG = np.random.default_rng(35)
_ALL = ("float32", "int32", "int8", "bool")


def _of(dtype: str, *shape: int) -> Any:
    if dtype == "float32":
        return np.asarray(_RNG.normal(0, 1, shape), np.float32)
    bound = 2 if dtype == "bool" else 100
    return np.asarray(_RNG.integers(2 - bound, bound, shape), dtype)


def _places(extent: int, *shape: int) -> Any:
    return _RNG.integers(0, extent, shape).astype(np.int32)


_BEYOND = np.array([0, -1, 4, 5, 99, -5, -6, -99, 2**31 - 1, -(2**31)], np.int32)

CASES = [
    Case(
        "aten.embedding.default",
        {"weight": _of("float32", v, e), "index": places, "padding_idx": -1},
        ("weight",),
        label,
    )
    for v, e, places, label in [
        (7, 5, _places(7, 2, 3), ""),
        (1, 1, _places(1, 1), ""),
        (11, 3, _places(11), ""),
        (5, 67, _BEYOND, "beyond"),
        (3, 5, _places(3, 0), ""),
        (3, 0, _places(3, 2), ""),
    ]
]
CASES += [
    Case("aten.index_select.default", {"x": _of(dtype, *shape), "dim": dim, "index": places},
         id=f"{dtype}-dim{dim}")
    for dtype in _ALL
    for shape, dim, places in [
        ((3, 5, 7), 0, _places(3, 5)),
        ((3, 5, 7), 1, _places(5, 3)),
        ((3, 5, 7), -1, _places(7, 11)),
        ((5,), 0, _BEYOND),
        ((), 0, _places(1, 1)),
        ((3, 5), 1, _places(5, 0)),
        ((2, 1, 2, 3, 2, 1, 2, 3), 3, _places(3, 5)),
    ]
]  # fmt: skip
CASES += [
    Case("aten.gather.default", {"x": _of(dtype, *shape), "dim": dim, "index": places},
         id=f"{dtype}-dim{dim}")
    for dtype in _ALL
    for shape, dim, places in [
        ((3, 5, 7), 0, _places(3, 11, 5, 7)),
        ((3, 5, 7), 1, _places(5, 2, 11, 3)),
        ((3, 5, 7), -1, _places(7, 3, 5, 1)),
        ((5,), 0, _BEYOND),
        ((), 0, _places(1)),
        ((5,), 0, _places(5)),
        ((), 0, _places(1, 3)),
        ((3, 5), 1, _places(5, 0, 2)),
        ((2, 1, 2, 3, 2, 1, 2, 3), 3, _places(3, 2, 1, 2, 5, 2, 1, 2, 3)),
    ]
]  # fmt: skip
