"""Gradients that need sums along an axis: softmax, log_softmax, layer_norm, rms_norm."""

import numpy as np

from nybble.contract import Array, Float32, Kernel, f32, op, rule, u32

__all__ = ["log_softmax_backward", "norm_backward", "softmax_backward"]

_AXIS = {
    "axis": "dim % max(1, len(value))",
    "length": "value[axis] if len(value) > 0 else 1",
    "inner": "stride_of(value, axis) if len(value) > 0 else 1",
}
_RANGE = rule(
    "-max(1, len(value)) <= dim < max(1, len(value))", "the axis must be one of the tensor's"
)


def _softmax_kernel(*, log: bool) -> Kernel:
    return Kernel(
        "softmax.wgsl",
        grid=("rows",),
        params={
            "rows": u32("count // max(1, length)"),
            "length": u32("length"),
            "inner": u32("inner"),
        },
        constants={"THREADS": "256 if length > 1024 else 64", "LOG": log},
    )


@op(
    "nybble.softmax_backward.default",
    out=Float32[Array, "*shape"],
    derived=_AXIS,
    rules=[_RANGE],
    kernels=[_softmax_kernel(log=False)],
    operations="4 * count",
)
def softmax_backward(
    d_out: Float32[Array, "*shape"], value: Float32[Array, "*shape"], dim: int
) -> Array:
    """Gradient of softmax along ``dim`` from its result."""
    with np.errstate(all="ignore"):
        d, y = d_out.astype(np.float64), value.astype(np.float64)
        total = (d * y).sum(axis=dim if y.ndim else None, keepdims=True)
        return np.asarray((y * (d - total)).reshape(value.shape), np.float32)


@op(
    "nybble.log_softmax_backward.default",
    out=Float32[Array, "*shape"],
    derived=_AXIS,
    rules=[_RANGE],
    kernels=[_softmax_kernel(log=True)],
    operations="12 * count",
)
def log_softmax_backward(
    d_out: Float32[Array, "*shape"], value: Float32[Array, "*shape"], dim: int
) -> Array:
    """Gradient of log_softmax along ``dim`` from its result."""
    with np.errstate(all="ignore"):
        d = d_out.astype(np.float64)
        total = d.sum(axis=dim if d.ndim else None, keepdims=True)
        result = d - np.exp(value.astype(np.float64)) * total
        return np.asarray(result.reshape(value.shape), np.float32)


@op(
    "nybble.norm_backward.default",
    out=Float32[Array, "*batch length"],
    kernels=[
        Kernel(
            "norm.wgsl",
            grid=("rows",),
            params={"rows": u32("numel(batch)"), "length": u32("length"), "eps": f32("eps")},
            constants={"THREADS": "256 if length > 1024 else 64", "CENTER": "center"},
        )
    ],
    operations="12 * count",
)
def norm_backward(
    d_out: Float32[Array, "*batch length"],
    x: Float32[Array, "*batch length"],
    weight: Float32[Array, "length"] | None,
    eps: float,
    center: bool,
) -> Array:
    """Gradient of a normalization of rows with respect to x.

    ``center`` tells layer_norm, which subtracts the mean, from rms_norm, which does not. The
    statistics are computed again from ``x``.
    """
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        if center:
            wide = wide - wide.mean(-1, keepdims=True)
        scale = 1 / np.sqrt(np.square(wide).mean(-1, keepdims=True) + np.float32(eps))
        normal = wide * scale
        d = d_out.astype(np.float64) if weight is None else d_out * weight.astype(np.float64)
        inner = d - normal * (d * normal).mean(-1, keepdims=True)
        if center:
            inner = inner - d.mean(-1, keepdims=True)
        return np.asarray(scale * inner, np.float32)
