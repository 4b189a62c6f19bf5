"""Conformance cases of views, copies, casts and rearrangements."""

from __future__ import annotations

from typing import Any

import numpy as np

from nybble.testing import Case

__all__ = ["CASES"]

_RNG = np.random.default_rng(24)


def _of(dtype: str, *shape: int) -> Any:
    if dtype == "float32":
        return _RNG.normal(0, 100, shape).astype(np.float32)
    if dtype == "bool":
        return np.asarray(_RNG.integers(0, 2, shape) == 1)
    bounds = np.iinfo(dtype)
    return _RNG.integers(bounds.min, bounds.max, shape, dtype=dtype, endpoint=True)


_ALL = ("float32", "int32", "int8", "bool")


def _each(name: str, shape: tuple[int, ...], label: str = "", **attributes: Any) -> list[Case]:
    return [
        Case(name, {"x": _of(dtype, *shape), **attributes}, id=f"{dtype}-{label}".strip("-"))
        for dtype in _ALL
    ]


_PERMUTATIONS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((2, 3, 5, 7), (0, 2, 3, 1)),
    ((2, 3, 5, 7), (0, 3, 1, 2)),
    ((2, 3, 5, 7), (3, 2, 1, 0)),
    ((2, 3, 5, 7), (0, 1, 2, 3)),
    ((2, 3, 5, 7), (1, 0, -2, -1)),
    ((1, 5, 1, 7), (2, 1, 0, 3)),
    ((11, 29), (1, 0)),
    ((67, 131), (1, 0)),
    ((3, 37, 41), (0, 2, 1)),
    ((2, 3, 1, 3, 2, 1, 2, 3), (7, 6, 5, 4, 3, 2, 1, 0)),
    ((1, 1), (1, 0)),
    ((), ()),
    ((0, 3), (1, 0)),
]

CASES = [
    *_each("aten.view_copy.default", (3, 5, 7), size=(7, -1)),
    *_each("aten.view_copy.default", (3, 5), size=(15,)),
    *_each("aten.view_copy.default", (1,), size=()),
    *_each("aten.view_copy.default", (0, 5), size=(5, 0)),
    *_each("aten.squeeze_copy.dims", (1, 3, 1, 5), dim=(0, 1, -2)),
    *_each("aten.unsqueeze_copy.default", (3, 5), dim=-1),
    *_each("aten.unsqueeze_copy.default", (3, 5), dim=0),
    *_each("aten.clone.default", (3, 5)),
    *_each("dim_order_ops._clone_dim_order.default", (3, 5)),
    *_each("et_vk.prepack.default", (3, 5)),
    *(
        case
        for shape, dims in _PERMUTATIONS
        for case in _each("aten.permute_copy.default", shape, "".join(map(str, dims)), dims=dims)
    ),
    *_each("aten.permute.default", (3, 5, 7), dims=(2, 0, 1)),
    *_each("aten.permute.default", (1, 5, 7), dims=(1, 0, 2)),
    *_each("aten.expand_copy.default", (3, 1, 7), size=(2, 3, 5, -1)),
    *_each("aten.expand_copy.default", (), size=(3, 5)),
    *_each("aten.expand_copy.default", (3, 5), size=(-1, -1)),
    *_each("aten.expand_copy.default", (1, 5), size=(0, 5)),
    *_each("aten.select_copy.int", (3, 5, 7), dim=1, index=-2),
    *_each("aten.select_copy.int", (3, 5, 7), dim=-1, index=3),
    *_each("aten.select_copy.int", (5,), dim=0, index=0),
    *_each("aten.slice_copy.Tensor", (3, 11, 7), dim=1, start=2, end=9, step=3),
    *_each("aten.slice_copy.Tensor", (3, 11, 7), dim=-1, start=-5, end=2**63 - 1, step=2),
    *_each("aten.slice_copy.Tensor", (11,), dim=0, start=None, end=-3),
    *_each("aten.slice_copy.Tensor", (11, 3), dim=0, start=-50, end=2),
    *_each("aten.slice_copy.Tensor", (11,), dim=0, start=7, end=3),
]

CASES += [
    *_each("aten.flip.default", (3, 5, 7), "1", dims=(1,)),
    *_each("aten.flip.default", (3, 5, 7), "all", dims=(0, -1, 1)),
    *_each("aten.flip.default", (3, 5, 7), "outer", dims=(0, 2)),
    *_each("aten.flip.default", (3, 1, 7), "still", dims=(1,)),
    *_each("aten.flip.default", (0, 5), dims=(0,)),
    *_each("aten.flip.default", (), dims=()),
    *_each("aten.flip.default", (2, 1, 2, 3, 2, 1, 2, 3), dims=(1, 2, 4, 7)),
    *_each("aten.repeat.default", (2, 5), "lead", repeats=(3, 1, 3)),
    *_each("aten.repeat.default", (2, 5), "both", repeats=(2, 3)),
    *_each("aten.repeat.default", (2, 5), "once", repeats=(1, 1, 1)),
    *_each("aten.repeat.default", (2, 5), "none", repeats=(0, 1)),
    *_each("aten.repeat.default", (), repeats=(3,)),
    *_each("aten.repeat.default", (2, 1, 3, 1, 2, 1, 3), repeats=(1, 3, 1, 2, 1, 3, 1)),
    *_each("aten.unfold_copy.default", (3, 11), "gap", dim=1, size=3, step=4),
    *_each("aten.unfold_copy.default", (3, 11, 2), "lap", dim=-2, size=5, step=2),
    *_each("aten.unfold_copy.default", (7,), dim=0, size=7, step=1),
    *_each("aten.unfold_copy.default", (), dim=0, size=1, step=1),
    *_each("aten.unfold_copy.default", (0, 5), dim=1, size=2, step=1),
]

_EDGES = np.array(
    [0.0, -0.0, 0.5, -0.5, 1.99, -1.99, 2147483520, 2147483648, 1e30, -2147483648, -1e30,
     float("nan"), float("inf"), float("-inf"), 16777217],
    np.float32,
)  # fmt: skip


def _cast(x: Any, out_dtype: str, label: str = "") -> list[Case]:
    names = (
        "dim_order_ops._to_dim_order_copy.default",
        "dim_order_ops._to_dim_order_copy.out",
        "aten._to_copy.default",
        "aten._to_copy.out",
    )
    arguments = {"x": x, "out_dtype": out_dtype}
    return [Case(n, arguments, id=f"{x.dtype}-{out_dtype}-{label}".strip("-")) for n in names]


CASES += [
    *_cast(_of("float32", 3, 7), "float32"),
    *_cast(_of("int8", 3, 7), "int8"),
    *_cast(_of("float32", 3, 7), "int32"),
    *_cast(_EDGES, "int32", "edges"),
    *_cast(_of("int32", 3, 7), "float32"),
    *_cast(_of("bool", 3, 7), "float32"),
    *_cast(_of("bool", 3, 7), "int32"),
    *_cast(_of("uint8", 3, 7), "float32"),
    *_cast(_of("int8", 3, 7), "float32"),
    *_cast(_EDGES, "bool", "edges"),
    *_cast(_RNG.integers(-1, 2, (3, 7), dtype=np.int32), "bool"),
    *_cast(_of("int32", 0, 7), "float32"),
    *_cast(_of("int32"), "float32"),
]
