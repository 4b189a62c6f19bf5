"""Whether any truth value along some axes holds; attention with masks asks it of every query."""

from typing import Any

import numpy as np

from nybble.contract import Array, Bool, Emit, Kernel, expansion, op, rule
from nybble.ops.reduce.arg import PARAMS

__all__ = ["any_all", "any_dim", "any_dims"]

Shape = tuple[int, ...]


def _axes(x: Shape, dims: Shape | None) -> Shape:
    gone = range(len(x)) if not dims else sorted({d % max(1, len(x)) for d in dims})
    return tuple(d for d in gone if d < len(x))


def _out_shape(x: Shape, dims: Shape | None, keepdim: bool) -> Shape:
    gone = _axes(x, dims)
    if keepdim:
        return tuple(1 if i in gone else size for i, size in enumerate(x))
    return tuple(size for i, size in enumerate(x) if i not in gone)


@op(
    "aten.any.dims",
    out=Bool[Array, "..."],
    out_variants=["aten.any.dims_out"],
    derived={
        "kept": "kept_axes(x, dims)",
        "reduced": "reduced_axes(x, dims)",
    },
    rules=[
        rule(
            "not dims or (-max(1, len(x)) <= min(dims) and max(dims) < max(1, len(x)))",
            "every reduced axis must be one of the tensor's",
        )
    ],
    kernels=[
        Kernel(
            "any.wgsl",
            grid=("cdiv(results, THREADS * 4)",),
            params=PARAMS,
            constants={"THREADS": 64, "KEPT": "len(kept)", "REDUCED": "len(reduced)"},
        )
    ],
    operations="numel(x)",
    shape=_out_shape,
    exact=True,
)
def any_dims(
    x: Bool[Array, "..."], dims: tuple[int, ...] | None = None, keepdim: bool = False
) -> Array:
    """Whether any value along the axes ``dims`` holds, along all of them where None or empty."""
    return np.asarray(x.any(_axes(x.shape, dims), keepdims=keepdim))


@expansion("aten.any.dim", out_variants=["aten.any.out"])
def any_dim(emit: Emit, x: Any, dim: int, keepdim: bool) -> Any:
    """Whether any value along an axis holds."""
    return emit("aten.any.dims", x=x, dims=(dim,), keepdim=keepdim)


@expansion("aten.any.default", out_variants=["aten.any.all_out"])
def any_all(emit: Emit, x: Any) -> Any:
    """Whether any value holds."""
    return emit("aten.any.dims", x=x)
