"""Sums, means and extremes over any axes of a float32 tensor."""

from typing import Any

import numpy as np

from nybble.contract import Array, Float32, Kernel, f32, op, rule, u32
from nybble.ops.reduce import arg, truth
from nybble.ops.strided import axis_params

__all__ = ["amax", "amin", "arg", "mean", "total", "truth"]

Shape = tuple[int, ...]
Dims = tuple[int, ...] | None

_DERIVED = {"kept": "kept_axes(x, dim)", "reduced": "reduced_axes(x, dim)"}
_RANGE_RULE = rule(
    "not dim or (-max(1, len(x)) <= min(dim) and max(dim) < max(1, len(x)))",
    "every reduced axis must be one of the tensor's",
)
_FILLED_RULE = rule("numel(x) > 0", "an extreme of no elements is not defined")
# Kept and reduced axes alternate once merged, so that four of each hold rank 8.
_MOST = 4
_PARAMS = {
    "results": u32("count"),
    "length": u32("numel(x) // max(1, count)"),
    **axis_params("kept", "kept_size", ["kept_stride"], _MOST),
    **axis_params("reduced", "reduced_size", ["reduced_stride"], _MOST),
}


def _kernels(start: str, step: str, finish: str) -> list[Kernel]:
    """A workgroup for a long reduction, a thread for a short one.

    ``start`` is the WGSL of an empty accumulation at offset ``base``; ``step`` takes ``v`` into
    ``best``; ``finish`` is the result.
    """
    # Infinite over no elements: the mean is then 0 * infinity, NaN.
    params = {**_PARAMS, "weight": f32("count / numel(x) if numel(x) > 0 else float('inf')")}
    text = {
        "KEPT": "len(kept)",
        "REDUCED": "len(reduced)",
        "START": repr(start),
        "STEP": repr(step),
        "FINISH": repr(finish),
    }
    return [
        Kernel(
            "reduce_workgroup.wgsl",
            grid=("results",),
            params=params,
            constants={"THREADS": "256 if numel(x) // max(1, count) > 2048 else 64", **text},
            when="numel(x) > (4096 if software else 128) * count",
        ),
        Kernel(
            "reduce_thread.wgsl",
            grid=("cdiv(results, THREADS)",),
            params=params,
            constants={"THREADS": 64, **text},
        ),
    ]


def _axes(x: Shape, dim: Dims) -> tuple[int, ...]:
    rank = max(1, len(x))
    gone = sorted({d % rank for d in dim}) if dim else range(len(x))
    return tuple(d for d in gone if d < len(x))


def _out_shape(x: Shape, dim: Dims, keepdim: bool, **_: Any) -> Shape:
    gone = _axes(x, dim)
    if keepdim:
        return tuple(1 if i in gone else size for i, size in enumerate(x))
    return tuple(size for i, size in enumerate(x) if i not in gone)


_SUM = _kernels("0.0", "best + v", "best")
_MEAN = _kernels("0.0", "best + v", "best * params.weight")
_MAX = _kernels("x[base]", "select(best, v, v > best || is_nan(v))", "best")
_MIN = _kernels("x[base]", "select(best, v, v < best || is_nan(v))", "best")


@op(
    "aten.sum.dim_IntList",
    out=Float32[Array, "..."],
    out_variants=["aten.sum.IntList_out"],
    derived=_DERIVED,
    rules=[_RANGE_RULE],
    kernels=_SUM,
    operations="numel(x)",
    shape=_out_shape,
)
def total(
    x: Float32[Array, "..."], dim: Dims = None, keepdim: bool = False, dtype: None = None
) -> Array:
    """Sum over the axes ``dim``, all of them where None or empty; 0 over no elements."""
    with np.errstate(all="ignore"):
        wide = x.sum(_axes(x.shape, dim), dtype=np.float64, keepdims=keepdim)
        return np.asarray(wide, np.float32)


@op(
    "aten.mean.dim",
    out=Float32[Array, "..."],
    out_variants=["aten.mean.out"],
    derived=_DERIVED,
    rules=[_RANGE_RULE],
    kernels=_MEAN,
    operations="numel(x)",
    shape=_out_shape,
)
def mean(
    x: Float32[Array, "..."], dim: Dims = None, keepdim: bool = False, dtype: None = None
) -> Array:
    """Mean over the axes ``dim``, all of them where None or empty; NaN over no elements."""
    with np.errstate(all="ignore"):
        wide = x.sum(_axes(x.shape, dim), dtype=np.float64, keepdims=keepdim)
        count = x.size // max(1, wide.size)
        return np.asarray(wide / np.float64(count), np.float32)


@op(
    "aten.amax.default",
    out=Float32[Array, "..."],
    out_variants=["aten.amax.out"],
    derived=_DERIVED,
    rules=[_RANGE_RULE, _FILLED_RULE],
    kernels=_MAX,
    operations="numel(x)",
    shape=_out_shape,
    exact=True,
)
def amax(x: Float32[Array, "..."], dim: Dims = None, keepdim: bool = False) -> Array:
    """Largest value along the axes ``dim``, all of them where empty; NaN where any is NaN."""
    return np.asarray(x.max(_axes(x.shape, dim), keepdims=keepdim))


@op(
    "aten.amin.default",
    out=Float32[Array, "..."],
    out_variants=["aten.amin.out"],
    derived=_DERIVED,
    rules=[_RANGE_RULE, _FILLED_RULE],
    kernels=_MIN,
    operations="numel(x)",
    shape=_out_shape,
    exact=True,
)
def amin(x: Float32[Array, "..."], dim: Dims = None, keepdim: bool = False) -> Array:
    """Smallest value along the axes ``dim``, all of them where empty; NaN where any is NaN."""
    return np.asarray(x.min(_axes(x.shape, dim), keepdims=keepdim))
