"""Softmax and its logarithm along any axis."""

import numpy as np

from nybble.contract import Array, Float32, Kernel, op, rule, u32
from nybble.ops.rows import row_kernels

__all__ = ["log_softmax", "softmax"]

_DERIVED = {
    "length": "x[dim] if len(x) > 0 else 1",
    "inner": "prod(x[dim % len(x) + 1:]) if len(x) > 0 else 1",
}
_RULE = rule("-max(1, len(x)) <= dim < max(1, len(x))", "the axis must be one of the tensor's")


def _kernels(*, logarithm: bool) -> list[Kernel]:
    return row_kernels(
        "softmax.wgsl",
        rows="count // max(1, length)",
        length="length",
        params={"inner": u32("inner")},
        constants={"LOGARITHM": logarithm},
    )


def _shifted(x: Array, dim: int) -> tuple[Array, Array]:
    """Values less the largest of their row, and the sums of the exponentials, in double."""
    wide = np.atleast_1d(x.astype(np.float64))
    moved = wide - wide.max(axis=dim, keepdims=True, initial=-np.inf)
    return moved, np.exp(moved).sum(axis=dim, keepdims=True)


@op(
    "aten._softmax.default",
    out=Float32[Array, "*shape"],
    out_variants=["aten._softmax.out"],
    derived=_DERIVED,
    rules=[_RULE],
    kernels=_kernels(logarithm=False),
    operations="20 * count",
)
def softmax(x: Float32[Array, "*shape"], dim: int, half_to_float: bool = False) -> Array:
    """exp(x - max) / sum(exp(x - max)) along the axis ``dim``.

    A row that holds NaN or +infinity, or nothing but -infinity, is NaN throughout.
    """
    with np.errstate(all="ignore"):
        moved, total = _shifted(x, dim)
        return (np.exp(moved) / total).astype(np.float32).reshape(x.shape)


@op(
    "aten._log_softmax.default",
    out=Float32[Array, "*shape"],
    out_variants=["aten._log_softmax.out"],
    derived=_DERIVED,
    rules=[_RULE],
    kernels=_kernels(logarithm=True),
    operations="20 * count",
)
def log_softmax(x: Float32[Array, "*shape"], dim: int, half_to_float: bool = False) -> Array:
    """x - max - log(sum(exp(x - max))) along the axis ``dim``; NaN as for softmax."""
    with np.errstate(all="ignore"):
        moved, total = _shifted(x, dim)
        return (moved - np.log(total)).astype(np.float32).reshape(x.shape)
