"""Places of extremes along an axis of a float32 tensor."""

from typing import Any

import numpy as np

from nybble.contract import Array, Float32, Int32, Kernel, op, rule, u32
from nybble.ops.strided import axis_params

__all__ = ["PARAMS", "argmax", "argmin"]

Shape = tuple[int, ...]
_DERIVED = {
    "kept": "kept_axes(x, () if dim is None else (dim,))",
    "reduced": "reduced_axes(x, () if dim is None else (dim,))",
}
_RULES = [
    rule("dim is None or -max(1, len(x)) <= dim < max(1, len(x))",
         "the axis must be one of the tensor's"),
    rule("numel(x) > 0", "an extreme of no elements is not defined"),
]  # fmt: skip


PARAMS = {
    "results": u32("count"),
    "length": u32("numel(x) // max(1, count)"),
    **axis_params("kept", "kept_size", ["kept_stride"], 4),
    **axis_params("reduced", "reduced_size", ["reduced_stride"], 4),
}


def _kernels(relation: str) -> list[Kernel]:
    text = {"KEPT": "len(kept)", "REDUCED": "len(reduced)", "RELATION": repr(relation)}
    return [
        Kernel(
            "arg.wgsl",
            grid=("results",),
            params=PARAMS,
            constants={"THREADS": 64, "WIDE": True, **text},
            when="numel(x) > (4096 if software else 128) * count",
        ),
        Kernel(
            "arg.wgsl",
            grid=("cdiv(results, THREADS)",),
            params=PARAMS,
            constants={"THREADS": 64, "WIDE": False, **text},
        ),
    ]


def _out_shape(x: Shape, dim: int | None, keepdim: bool) -> Shape:
    gone = range(len(x)) if dim is None else (dim % max(1, len(x)),)
    if keepdim:
        return tuple(1 if i in gone else size for i, size in enumerate(x))
    return tuple(size for i, size in enumerate(x) if i not in gone)


def _places(function: Any, x: Array, dim: int | None, keepdim: bool) -> Array:
    axis = None if x.ndim == 0 else dim
    found = np.asarray(function(x, axis=axis), np.int32)
    return found.reshape(_out_shape(x.shape, dim, keepdim))


@op(
    "aten.argmax.default",
    out=Int32[Array, "..."],
    out_variants=["aten.argmax.out"],
    derived=_DERIVED,
    rules=_RULES,
    kernels=_kernels(">"),
    operations="numel(x)",
    shape=_out_shape,
    exact=True,
)
def argmax(x: Float32[Array, "..."], dim: int | None = None, keepdim: bool = False) -> Array:
    """The place of the largest value along an axis, of the whole tensor where None.

    Of equal values the first; the first NaN where there is one.
    """
    return _places(np.argmax, x, dim, keepdim)


@op(
    "aten.argmin.default",
    out=Int32[Array, "..."],
    out_variants=["aten.argmin.out"],
    derived=_DERIVED,
    rules=_RULES,
    kernels=_kernels("<"),
    operations="numel(x)",
    shape=_out_shape,
    exact=True,
)
def argmin(x: Float32[Array, "..."], dim: int | None = None, keepdim: bool = False) -> Array:
    """The place of the smallest value along an axis, of the whole tensor where None.

    Of equal values the first; the first NaN where there is one.
    """
    return _places(np.argmin, x, dim, keepdim)
