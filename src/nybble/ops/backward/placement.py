"""Gradients of what picks elements out of a tensor: slices, selections, rows of a table."""

import math
from typing import Any

import numpy as np

from nybble.contract import Array, Float32, Int32, Kernel, op, rule, u32

__all__ = ["place", "scatter_rows"]

Shape = tuple[int, ...]


def _placed_shape(x: Shape, dim: int, extent: int, **_: Any) -> Shape:
    at = dim % len(x)
    return (*x[:at], extent, *x[at + 1 :])


@op(
    "nybble.place.default",
    out=Float32[Array, "..."],
    rules=[
        rule("len(x) > 0 and -len(x) <= dim < len(x)", "the axis must be one of the tensor's"),
        rule("start >= 0 and step >= 1", "the start must not be negative, the step positive"),
        rule(
            "x[dim] == 0 or start + (x[dim] - 1) * step < extent",
            "the placed elements must lie within the extent",
        ),
    ],
    kernels=[
        Kernel(
            "place.wgsl",
            grid=("cdiv(elements, THREADS)",),
            params={
                "elements": u32("count"),
                "inner": u32("stride_of(x, dim % len(x))"),
                "extent": u32("extent"),
                "start": u32("start"),
                "step": u32("step"),
                "length": u32("x[dim]"),
            },
            constants={"THREADS": 64},
        )
    ],
    operations="0",
    shape=_placed_shape,
    exact=True,
)
def place(x: Float32[Array, "..."], dim: int, extent: int, start: int = 0, step: int = 1) -> Array:
    """x spread along the axis ``dim`` of ``extent`` zeros, from ``start`` in steps of ``step``."""
    result = np.zeros(_placed_shape(x.shape, dim, extent), np.float32)
    index: list[Any] = [slice(None)] * x.ndim
    index[dim] = slice(start, start + x.shape[dim] * step, step)
    result[tuple(index)] = x
    return result


@op(
    "nybble.scatter_rows.default",
    out=Float32[Array, "rows width"],
    kernels=[
        Kernel(
            "scatter_rows.wgsl",
            grid=("cdiv(elements, THREADS)",),
            params={
                "elements": u32("count"),
                "width": u32("width"),
                "tokens": u32("numel(batch)"),
            },
            constants={"THREADS": 64},
        )
    ],
    operations="count * numel(batch)",
    derived={"rows": "extent"},
)
def scatter_rows(
    d_out: Float32[Array, "*batch width"], indices: Int32[Array, "*batch"], extent: int
) -> Array:
    """Rows summed by index into a table of ``extent`` rows; indices outside it are left out.

    The gradient of an embedding. Every element of the table looks at every token, which costs
    ``rows * width * tokens`` comparisons and gives the same sum on every device.
    """
    width = d_out.shape[-1]
    table = np.zeros((extent, width))
    flat = indices.reshape(-1)
    inside = (flat >= 0) & (flat < extent)
    rows = d_out.reshape(math.prod(indices.shape), width).astype(np.float64)
    np.add.at(table, flat[inside], rows[inside])
    return table.astype(np.float32)
