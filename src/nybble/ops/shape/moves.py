"""Rearrangements: each result element is read from one strided place of the input."""

from typing import Any

import numpy as np

from nybble.contract import Alias, AnyTensor, Array, Kernel, op, rule, u32
from nybble.contract.strides import broadcast_shape
from nybble.ops.strided import MOST_AXES, axis_params

__all__ = ["expand", "permute", "permute_copy", "select", "slice_copy", "strided_kernels"]

Shape = tuple[int, ...]
_WORDS = "x_dtype in ('float32', 'int32')"


def strided_kernels(axes: str, offset: str = "0") -> list[Kernel]:
    """Word by word, or four bytes a thread.

    ``axes`` gives the result's axes with the input's strides, ``offset`` the first element read.
    """
    params = {
        "elements": u32("count"),
        "offset": u32(offset),
        **axis_params(axes, "size", ["stride"]),
    }
    constants: dict[str, int | float | bool | str] = {"THREADS": 64, "AXES": f"len({axes})"}
    fits = f"len({axes}) <= {MOST_AXES}"
    return [
        Kernel(
            "gather_words.wgsl",
            grid=("cdiv(elements, THREADS)",),
            params=params,
            constants=constants,
            when=f"{fits} and {_WORDS}",
        ),
        Kernel(
            "gather_bytes.wgsl",
            grid=("cdiv(elements, THREADS * 4)",),
            params=params,
            constants=constants,
            when=f"{fits} and not ({_WORDS})",
        ),
    ]


def _permuted_shape(x: Shape, dims: Shape, **_: Any) -> Shape:
    rank = len(x)
    if sorted(d % max(1, rank) for d in dims) != list(range(rank)):
        raise ValueError(f"{list(dims)} does not order the axes of {list(x)}")
    return tuple(x[d] for d in dims)


# Axes of one element may move freely: then the elements stay where they are.
_PERMUTATION = {"axes": "permuted_axes(x, dims)"}
# Whether the last two merged axes are swapped and nothing else: NCHW to NHWC and back.
_SWAPPED = (
    "len(axes) in (2, 3) and axes[1][1] == 1 and axes[0][1] == axes[1][0]"
    " and (len(axes) == 2 or axes[2][1] == axes[0][0] * axes[1][0])"
)
_PERMUTED: list[Kernel | Alias] = [
    Alias("x", when="len(axes) == 0 or (len(axes) == 1 and axes[0][1] == 1)"),
    Kernel(
        "transpose.wgsl",
        grid=("cdiv(rows, 32) * cdiv(columns, 32) * matrices",),
        params={
            "rows": u32("axes[0][0] if len(axes) > 1 else 1"),
            "columns": u32("axes[1][0] if len(axes) > 1 else 1"),
            "matrices": u32("axes[2][0] if len(axes) > 2 else 1"),
        },
        constants={"SCALAR": "'f32' if x_dtype == 'float32' else 'i32'"},
        when=f"not software and {_WORDS} and {_SWAPPED}",
    ),
    *strided_kernels("axes"),
]


@op(
    "aten.permute_copy.default",
    out=AnyTensor[Array, "..."],
    out_variants=["aten.permute_copy.out"],
    derived=_PERMUTATION,
    kernels=_PERMUTED,
    operations="0",
    shape=_permuted_shape,
    exact=True,
)
def permute_copy(x: AnyTensor[Array, "..."], dims: tuple[int, ...]) -> Array:
    """The tensor with its axes in the order ``dims``."""
    return np.array(x.transpose(dims), order="C")


@op(
    "aten.permute.default",
    out=AnyTensor[Array, "..."],
    derived=_PERMUTATION,
    kernels=_PERMUTED,
    operations="0",
    shape=_permuted_shape,
    exact=True,
)
def permute(x: AnyTensor[Array, "..."], dims: tuple[int, ...]) -> Array:
    """The tensor with its axes in the order ``dims``."""
    return np.array(x.transpose(dims), order="C")


def _expanded_shape(x: Shape, size: Shape, **_: Any) -> Shape:
    lead = len(size) - len(x)
    if lead < 0 or -1 in size[:lead]:
        raise ValueError(f"{list(size)} cannot hold {list(x)}")
    wanted = tuple(x[i - lead] if s == -1 else s for i, s in enumerate(size))
    if broadcast_shape(x, wanted) != wanted:
        raise ValueError(f"{list(x)} does not expand to {list(wanted)}")
    return wanted


@op(
    "aten.expand_copy.default",
    out=AnyTensor[Array, "..."],
    out_variants=["aten.expand_copy.out"],
    kernels=[Alias("x", when="numel(x) == count"), *strided_kernels("expanded_axes(x, out)")],
    operations="0",
    shape=_expanded_shape,
    exact=True,
)
def expand(x: AnyTensor[Array, "..."], size: tuple[int, ...], implicit: bool = False) -> Array:
    """The tensor repeated along axes of one element; -1 keeps an axis as it is."""
    return np.broadcast_to(x, _expanded_shape(x.shape, size)).copy()


def _selected_shape(x: Shape, dim: int, **_: Any) -> Shape:
    at = dim % len(x)
    return (*x[:at], *x[at + 1 :])


_AXIS_RULE = rule("-len(x) <= dim < len(x)", "the axis must be one of the tensor's")


@op(
    "aten.select_copy.int",
    out=AnyTensor[Array, "..."],
    out_variants=["aten.select_copy.int_out"],
    derived={"extent": "x[dim]"},
    rules=[_AXIS_RULE, rule("-extent <= index < extent", "the index must lie on the axis")],
    kernels=strided_kernels("kept_axes(x, (dim,))", "index % extent * stride_of(x, dim % len(x))"),
    operations="0",
    shape=_selected_shape,
    exact=True,
)
def select(x: AnyTensor[Array, "..."], dim: int, index: int) -> Array:
    """The part of the tensor at ``index`` of an axis, without that axis."""
    return np.array(np.take(x, index, axis=dim), order="C")


def _sliced_shape(x: Shape, dim: int, start: int | None, end: int | None, step: int) -> Shape:
    length = len(range(x[dim])[slice(start, end, step)])
    at = dim % len(x)
    return (*x[:at], length, *x[at + 1 :])


@op(
    "aten.slice_copy.Tensor",
    out=AnyTensor[Array, "..."],
    out_variants=["aten.slice_copy.Tensor_out"],
    derived={"extent": "x[dim]", "begin": "0 if start is None else start"},
    rules=[_AXIS_RULE, rule("step >= 1", "the step must be positive")],
    kernels=strided_kernels(
        "sliced_axes(x, dim, step, out)",
        "min(max(begin + (extent if begin < 0 else 0), 0), extent) * stride_of(x, dim % len(x))",
    ),
    operations="0",
    shape=_sliced_shape,
    exact=True,
)
def slice_copy(
    x: AnyTensor[Array, "..."],
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Array:
    """Every ``step``-th element of an axis from ``start`` up to ``end``, bounds clamped to it."""
    index: list[Any] = [slice(None)] * x.ndim
    index[dim] = slice(start, end, step)
    return np.array(x[tuple(index)], order="C")
