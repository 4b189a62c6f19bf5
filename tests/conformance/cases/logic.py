"""Conformance cases of comparisons, logic and selection."""

from __future__ import annotations

from typing import Any

import numpy as np

from nybble.testing import Case

__all__ = ["CASES"]

_RNG = np.random.default_rng(34)
_NAN, _INFINITY = float("nan"), float("inf")
_SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((3, 5, 7), (3, 5, 7)),
    ((3, 5, 7), (5, 1)),
    ((3, 1, 7), (2, 1, 5, 1)),
    ((), ()),
    ((1,), (11,)),
    ((0, 3), (3,)),
    ((2, 1, 2, 3, 1, 2, 1, 3), (1, 3, 2, 1, 2, 2, 5, 3)),
]


def _of(dtype: str, *shape: int) -> Any:
    """Few different values, so that many are equal."""
    if dtype == "bool":
        return np.asarray(_RNG.integers(0, 2, shape) == 1)
    if dtype == "float32":
        return np.asarray(_RNG.integers(-2, 3, shape) * np.float32(0.1), np.float32)
    return np.asarray(_RNG.integers(-3, 4, shape), dtype)


_SPECIAL = np.array([_NAN, _INFINITY, -_INFINITY, 0.0, -0.0, 1.0, 3e38], np.float32)
_NAMES = ("eq", "ne", "lt", "le", "gt", "ge")

CASES = [
    Case(f"aten.{name}.Tensor", {"x": _of(dtype, *a), "other": _of(dtype, *b)}, id=dtype)
    for name in _NAMES
    for dtype in ("float32", "int32")
    for a, b in _SHAPES
]
CASES += [
    Case(f"aten.{name}.Tensor", {"x": _SPECIAL[:, None], "other": _SPECIAL}, id="special")
    for name in _NAMES
]
CASES += [
    Case(f"aten.{name}.Scalar", {"x": x, "scalar": scalar}, id=f"{x.dtype}-{scalar:g}")
    for name in _NAMES
    for x, scalar in [
        (_of("float32", 3, 7), 0.1),
        (_of("float32", 3, 7), 1e300),
        (_of("float32"), 0),
        (_of("float32", 0, 3), 0),
        (_SPECIAL, 0.0),
        (_SPECIAL, _INFINITY),
        (_of("int32", 3, 7), 1),
        (_of("int32", 3, 7), 0.5),
        (np.array([2**31 - 1, -(2**31), 2**24 + 1], np.int32), 2**24 + 1),
        (np.array([2**31 - 1, -(2**31), 5], np.int32), float(2**31)),
    ]
]
CASES += [
    Case(f"aten.{name}", {"x": _of(dtype, *a), "other": _of(dtype, *b)}, id=dtype)
    for name, dtypes in [
        ("logical_and.default", ("bool",)),
        ("logical_or.default", ("bool",)),
        ("logical_xor.default", ("bool",)),
        ("bitwise_and.Tensor", ("bool", "int32")),
        ("bitwise_or.Tensor", ("bool", "int32")),
        ("bitwise_xor.Tensor", ("bool", "int32")),
    ]
    for dtype in dtypes
    for a, b in _SHAPES
]
CASES += [
    Case(f"aten.{name}.default", {"x": _of(dtype, *shape)}, id=dtype)
    for name, dtype in [("logical_not", "bool"), ("bitwise_not", "bool"), ("bitwise_not", "int32")]
    for shape in [(3, 7), (), (1,), (0, 3)]
]
CASES += [
    Case(
        "aten.where.self",
        {"condition": _of("bool", *c), "x": _of(dtype, *a), "other": _of(dtype, *b)},
        id=dtype,
    )
    for dtype in ("float32", "int32", "int8", "bool")
    for c, a, b in [
        ((3, 5, 7), (3, 5, 7), (3, 5, 7)),
        ((3, 1, 7), (5, 1), (2, 1, 1, 7)),
        ((5,), (), ()),
        ((), (3, 5), (5,)),
        ((0, 3), (3,), (1,)),
        ((2, 1, 2, 3, 1, 2, 1, 3), (1, 3, 2, 1, 2, 2, 5, 3), (3,)),
    ]
]
CASES += [Case("aten.where.self", {"condition": _SPECIAL > 0, "x": _SPECIAL, "other": -_SPECIAL})]
