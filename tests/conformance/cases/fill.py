"""Conformance cases of constant tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from nybble.testing import Case

__all__ = ["CASES"]

_SHAPES = [(3, 5, 7), (1,), (), (0, 3)]
_DTYPES = ("float32", "int32", "int8", "bool")
_X = {dtype: [np.ones(shape, dtype) for shape in _SHAPES] for dtype in _DTYPES}

CASES = [
    Case(f"aten.{name}", {"size": shape, "out_dtype": dtype}, id=f"{dtype}-{len(shape)}")
    for name in ("ones.default", "ones.out", "zeros.default", "zeros.out")
    for dtype in _DTYPES
    for shape in _SHAPES
]
CASES += [
    Case(f"aten.{name}", {"x": x, "out_dtype": dtype}, id=dtype)
    for name in ("ones_like.default", "ones_like.out", "zeros_like.default", "zeros_like.out")
    for dtype in _DTYPES
    for x in _X["float32"]
]
_VALUED: list[tuple[str, dict[str, Any]]] = [
    ("aten.full.default", {"size": (3, 5)}),
    ("aten.full.out", {"size": (3, 5)}),
    ("aten.full_like.default", {"x": _X["float32"][0]}),
    ("aten.full_like.out", {"x": _X["int8"][0]}),
    ("aten.scalar_tensor.default", {}),
    ("aten.scalar_tensor.out", {}),
]
CASES += [
    Case(name, {**arguments, "value": value, "out_dtype": dtype}, id=f"{dtype}-{value:g}")
    for name, arguments in _VALUED
    for dtype, value in [
        ("float32", 2.5), ("float32", 1e300), ("float32", -float("inf")), ("int32", -7),
        ("int32", 2**31 - 1), ("int8", -128), ("bool", 0.5), ("bool", 0),
    ]
]  # fmt: skip
CASES += [Case("aten.full_like.default", {"x": _X["int32"][0], "value": 3})]
CASES += [
    Case(name, {"start": start, "end": end, "step": step, "out_dtype": dtype},
         id=f"{dtype}-{start:g}-{end:g}-{step:g}")
    for name in ("aten.arange.start_step", "aten.arange.start_out")
    for dtype, start, end, step in [
        ("float32", 0, 7, 1), ("float32", 0.5, 3, 0.25), ("float32", 3, -3, -1.5),
        ("float32", 3, 3, 1), ("int32", 0, 11, 1), ("int32", -5, 7, 3), ("int32", 5, -5, -3),
        ("int32", 3, 3, 1),
    ]
]  # fmt: skip
