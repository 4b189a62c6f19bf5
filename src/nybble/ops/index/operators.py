"""Elements picked by indices: tables of embeddings, rows of an axis, one element each.

Everywhere a negative index counts from the end, and an index outside the axis reads the nearest
element: a GPU cannot raise.
"""

from typing import Any

import numpy as np

from nybble.contract import AnyTensor, Array, Emit, Float32, Int32, Kernel, expansion, op, rule, u32
from nybble.ops.strided import MOST_AXES, axis_params

__all__ = ["embedding", "gather", "index", "index_select"]

Shape = tuple[int, ...]
_WORDS = "x_dtype in ('float32', 'int32')"
_AXIS_RULE = rule("-max(1, len(x)) <= dim < max(1, len(x))", "the axis must be one of the tensor's")


def _places(indices: Array, extent: int) -> Array:
    wrapped = np.where(indices < 0, indices.astype(np.int64) + extent, indices)
    return np.clip(wrapped, 0, max(0, extent - 1))


def _take_kernels(table: str, extent: str, inner: str) -> list[Kernel]:
    params = {
        "elements": u32("count"),
        "extent": u32(extent),
        "inner": u32(f"max(1, {inner})"),
        "indices": u32("max(1, numel(index))"),
    }
    text: dict[str, int | float | bool | str] = {"TABLE": repr(table), "THREADS": 64}
    words = Kernel(
        "take.wgsl",
        grid=("cdiv(elements, THREADS)",),
        params=params,
        constants={**text, "NARROW": False},
        when="True" if table == "weight" else _WORDS,
    )
    narrow = Kernel(
        "take.wgsl",
        grid=("cdiv(elements, THREADS * 4)",),
        params=params,
        constants={**text, "NARROW": True},
        when=f"not ({_WORDS})",
    )
    return [words] if table == "weight" else [words, narrow]


@op(
    "aten.embedding.default",
    out=Float32[Array, "*batch e"],
    out_variants=["aten.embedding.out"],
    rules=[rule("v >= 1 or numel(index) == 0", "the table must have a row")],
    kernels=_take_kernels("weight", "v", "e"),
    operations="0",
    exact=True,
)
def embedding(
    weight: Float32[Array, "v e"],
    index: Int32[Array, "*batch"],
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Array:
    """The rows of a table that the indices name; the other arguments concern its gradient."""
    return np.take(weight, _places(index, len(weight)), axis=0)


def _selected_shape(x: Shape, dim: int, index: Shape) -> Shape:
    at = dim % max(1, len(x))
    return (*x[:at], *index, *x[at + 1 :]) if x else ()


@op(
    "aten.index_select.default",
    out=AnyTensor[Array, "..."],
    out_variants=["aten.index_select.out"],
    derived={
        "extent": "x[dim] if len(x) > 0 else 1",
        "inner": "prod(x[dim % len(x) + 1:]) if len(x) > 0 else 1",
    },
    rules=[
        _AXIS_RULE,
        rule("len(index) == 1", "the indices must have one axis"),
        rule("len(x) > 0 or numel(index) == 1", "of a scalar one element can be selected"),
        rule("extent >= 1 or numel(index) == 0", "the axis must have an element"),
    ],
    kernels=_take_kernels("x", "extent", "inner"),
    operations="0",
    shape=_selected_shape,
    exact=True,
)
def index_select(x: AnyTensor[Array, "..."], dim: int, index: Int32[Array, "..."]) -> Array:
    """The parts of an axis that the indices name, in their order."""
    if x.ndim == 0:
        return x.copy()
    return np.array(np.take(x, _places(index, x.shape[dim]), axis=dim), order="C")


@expansion("aten.index.Tensor", out_variants=["aten.index.Tensor_out"])
def index(emit: Emit, x: Any, indices: Any) -> Any:
    """The parts of one axis that indices of any shape name, in place of that axis."""
    given = [(axis, item) for axis, item in enumerate(indices) if item is not None]
    if len(given) != 1:
        raise ValueError(f"it indexes {len(given)} axes at once; nybble indexes one")
    dim, item = given[0]
    flat = item
    if len(item.shape) != 1:
        flat = emit("aten.view_copy.default", x=item, size=(int(np.prod(item.shape)),))
    taken = emit("aten.index_select.default", x=x, dim=dim, index=flat)
    if flat is item:
        return taken
    size = (*x.shape[:dim], *item.shape, *x.shape[dim + 1 :])
    return emit("aten.view_copy.default", x=taken, size=size)


def _gather_kernels() -> list[Kernel]:
    params = {
        "elements": u32("count"),
        "extent": u32("extent"),
        "dim_stride": u32("stride_of(x, dim % len(x)) if len(x) > 0 else 1"),
        **axis_params("axes", "size", ["stride"]),
    }
    constants: dict[str, int | float | bool | str] = {"THREADS": 64, "AXES": "len(axes)"}
    return [
        Kernel(
            "gather.wgsl",
            grid=("cdiv(elements, THREADS * 4)" if narrow else "cdiv(elements, THREADS)",),
            params=params,
            constants={**constants, "NARROW": narrow},
            when=f"len(axes) <= {MOST_AXES} and ({_WORDS}) != {narrow}",
        )
        for narrow in (False, True)
    ]


@op(
    "aten.gather.default",
    out=AnyTensor[Array, "*places"],
    out_variants=["aten.gather.out"],
    derived={
        "extent": "x[dim] if len(x) > 0 else 1",
        "axes": "gathered_axes(x, dim, index)",
    },
    rules=[
        _AXIS_RULE,
        rule("extent >= 1 or numel(index) == 0", "the axis must have an element"),
    ],
    kernels=_gather_kernels(),
    operations="0",
    exact=True,
)
def gather(
    x: AnyTensor[Array, "..."], dim: int, index: Int32[Array, "*places"], sparse_grad: bool = False
) -> Array:
    """For each index, the element of x at its own place but for the axis ``dim``.

    The indices must not exceed x along the other axes. A scalar counts as one element of an axis.
    """
    if x.ndim == 0:
        return np.broadcast_to(x, index.shape).copy()
    indices = np.atleast_1d(index)
    grid: list[Array] = list(np.indices(indices.shape, sparse=True))
    grid[dim % x.ndim] = _places(indices, x.shape[dim])
    return np.asarray(x[tuple(grid)], order="C").reshape(index.shape)
