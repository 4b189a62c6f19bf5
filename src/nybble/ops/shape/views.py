"""Results whose words are the input's: nothing is dispatched."""

import math
from typing import Any

import numpy as np

from nybble.contract import Alias, AnyTensor, Array, op, rule

__all__ = ["clone", "clone_dim_order", "prepack", "squeeze_dims", "unsqueeze", "view"]

Shape = tuple[int, ...]


def _view_shape(x: Shape, size: Shape, **_: Any) -> Shape:
    if size.count(-1) > 1:
        raise ValueError("a shape can leave one size open, not several")
    known = math.prod(s for s in size if s != -1)
    shape = tuple(math.prod(x) // known if s == -1 else s for s in size)
    if math.prod(shape) != math.prod(x):
        raise ValueError(f"{list(size)} does not hold the {math.prod(x)} elements of {list(x)}")
    return shape


def _squeezed_shape(x: Shape, dim: Shape, **_: Any) -> Shape:
    gone = {d % max(1, len(x)) for d in dim}
    return tuple(size for i, size in enumerate(x) if i not in gone or size != 1)


def _unsqueezed_shape(x: Shape, dim: int, **_: Any) -> Shape:
    at = dim % (len(x) + 1)
    return (*x[:at], 1, *x[at:])


def _same_shape(x: Shape, **_: Any) -> Shape:
    return x


@op(
    "aten.view_copy.default",
    out=AnyTensor[Array, "..."],
    out_variants=["aten.view_copy.out"],
    kernels=[Alias("x")],
    operations="0",
    shape=_view_shape,
    exact=True,
)
def view(x: AnyTensor[Array, "..."], size: tuple[int, ...]) -> Array:
    """The same elements in row-major order under another shape; one size may be -1."""
    return x.reshape(_view_shape(x.shape, size)).copy()


@op(
    "aten.squeeze_copy.dims",
    out=AnyTensor[Array, "..."],
    out_variants=["aten.squeeze_copy.dims_out"],
    rules=[
        rule(
            "len(dim) == 0 or (-max(1, len(x)) <= min(dim) and max(dim) < max(1, len(x)))",
            "every squeezed axis must be one of the tensor's",
        )
    ],
    kernels=[Alias("x")],
    operations="0",
    shape=_squeezed_shape,
    exact=True,
)
def squeeze_dims(x: AnyTensor[Array, "..."], dim: tuple[int, ...]) -> Array:
    """The tensor without those of the axes ``dim`` that have one element."""
    return x.reshape(_squeezed_shape(x.shape, dim)).copy()


@op(
    "aten.unsqueeze_copy.default",
    out=AnyTensor[Array, "..."],
    out_variants=["aten.unsqueeze_copy.out"],
    rules=[rule("-len(x) - 1 <= dim <= len(x)", "the new axis must lie within the result")],
    kernels=[Alias("x")],
    operations="0",
    shape=_unsqueezed_shape,
    exact=True,
)
def unsqueeze(x: AnyTensor[Array, "..."], dim: int) -> Array:
    """The tensor with an axis of one element at ``dim``."""
    return x.reshape(_unsqueezed_shape(x.shape, dim)).copy()


@op(
    "aten.clone.default",
    out=AnyTensor[Array, "..."],
    out_variants=["aten.clone.out"],
    kernels=[Alias("x")],
    operations="0",
    shape=_same_shape,
    exact=True,
)
def clone(x: AnyTensor[Array, "..."], memory_format: None = None) -> Array:
    """A copy. The order of axes in memory is the planner's, so ``memory_format`` says nothing."""
    return x.copy()


@op(
    "dim_order_ops._clone_dim_order.default",
    out=AnyTensor[Array, "..."],
    out_variants=["dim_order_ops._clone_dim_order.out"],
    kernels=[Alias("x")],
    operations="0",
    shape=_same_shape,
    exact=True,
)
def clone_dim_order(
    x: AnyTensor[Array, "..."], non_blocking: None = None, dim_order: None = None
) -> Array:
    """A copy. The order of axes in memory is the planner's, so ``dim_order`` says nothing."""
    return x.copy()


@op(
    "et_vk.prepack.default",
    out=AnyTensor[Array, "..."],
    kernels=[Alias("x")],
    operations="0",
    shape=_same_shape,
    exact=True,
)
def prepack(x: AnyTensor[Array, "..."]) -> Array:
    """The constant itself; programs mark with it what a runtime may rearrange at load."""
    return np.array(x)
