"""Elements read backwards, again and again, or in overlapping windows."""

from typing import Any

import numpy as np

from nybble.contract import Alias, AnyTensor, Array, op, rule
from nybble.ops.shape.moves import strided_kernels

__all__ = ["flip", "repeat", "unfold"]

Shape = tuple[int, ...]


def _same_shape(x: Shape, **_: Any) -> Shape:
    return x


@op(
    "aten.flip.default",
    out=AnyTensor[Array, "..."],
    out_variants=["aten.flip.out"],
    rules=[
        rule(
            "len(dims) == 0 or (-max(1, len(x)) <= min(dims) and max(dims) < max(1, len(x)))",
            "every flipped axis must be one of the tensor's",
        )
    ],
    kernels=[
        Alias("x", when="flipped_offset(x, dims) == 0"),
        *strided_kernels("flipped_axes(x, dims)", "flipped_offset(x, dims)"),
    ],
    operations="0",
    shape=_same_shape,
    exact=True,
)
def flip(x: AnyTensor[Array, "..."], dims: tuple[int, ...]) -> Array:
    """The tensor with the order of elements reversed along the axes ``dims``."""
    return np.array(np.flip(x, dims) if x.ndim else x, order="C")


def _repeated_shape(x: Shape, repeats: Shape) -> Shape:
    whole = (1,) * (len(repeats) - len(x)) + x
    return tuple(n * r for n, r in zip(whole, repeats, strict=True))


@op(
    "aten.repeat.default",
    out=AnyTensor[Array, "..."],
    out_variants=["aten.repeat.out"],
    rules=[
        rule("len(repeats) >= len(x)", "there must be a count for each of the tensor's axes"),
        rule("len(repeats) == 0 or min(repeats) >= 0", "counts must not be negative"),
    ],
    kernels=[Alias("x", when="numel(x) == count"), *strided_kernels("repeated_axes(x, repeats)")],
    operations="0",
    shape=_repeated_shape,
    exact=True,
)
def repeat(x: AnyTensor[Array, "..."], repeats: tuple[int, ...]) -> Array:
    """The tensor repeated along each axis; further counts go to new axes in front."""
    return np.array(np.tile(x, repeats), order="C").reshape(_repeated_shape(x.shape, repeats))


def _unfolded_shape(x: Shape, dim: int, size: int, step: int) -> Shape:
    if not x:
        return (size,)
    at = dim % len(x)
    return (*x[:at], (x[at] - size) // step + 1, *x[at + 1 :], size)


@op(
    "aten.unfold_copy.default",
    out=AnyTensor[Array, "..."],
    out_variants=["aten.unfold_copy.out"],
    derived={"extent": "x[dim] if len(x) > 0 else 1"},
    rules=[
        rule("-max(1, len(x)) <= dim < max(1, len(x))", "the axis must be one of the tensor's"),
        rule("0 <= size <= extent", "a window must fit into the axis"),
        rule("step >= 1", "the step must be positive"),
    ],
    kernels=strided_kernels("unfolded_axes(x, dim, size, step)"),
    operations="0",
    shape=_unfolded_shape,
    exact=True,
)
def unfold(x: AnyTensor[Array, "..."], dim: int, size: int, step: int) -> Array:
    """Windows of ``size`` elements along an axis, one every ``step``; the window is a last axis."""
    if x.ndim == 0:
        return np.array(np.broadcast_to(x, (size,)))
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis=dim)
    chosen: list[Any] = [slice(None)] * windows.ndim
    chosen[dim % x.ndim] = slice(None, None, step)
    return np.array(windows[tuple(chosen)], order="C")
