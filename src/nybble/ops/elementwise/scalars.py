"""Arithmetic of a tensor with a number, as it stands between delegates."""

import numpy as np

from nybble.contract import Array, Float32, Kernel, Real, f32, i32, op, rule
from nybble.ops.elementwise.unary import unary_kernel

__all__ = ["add", "div", "mul", "sub"]

_SINGLE = "{0} if abs({0}) < 2.0**128 else {0} * float('inf')"


def _fits(expression: str) -> str:
    whole = f"({expression}) == int({expression}) and -2**31 <= {expression} < 2**31"
    return f"x_dtype != 'int32' or ({whole})"


def _kernels(sign: str, number: str) -> list[Kernel]:
    """``v SIGN number`` of float32 and of int32."""
    value = repr(f"v {sign} params.number")
    return [
        unary_kernel(value, {"number": f32(_SINGLE.format(f"({number})"))}, "x_dtype == 'float32'"),
        unary_kernel(value, {"number": i32(f"int({number})")}, "x_dtype == 'int32'"),
    ]


def _number(x: Array, value: float) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(value, x.dtype)


@op(
    "aten.add.Scalar",
    out=Real[Array, "*shape"],
    out_variants=["aten.add.Scalar_out"],
    rules=[rule(_fits("alpha * other"), "int32 elements and a fraction do not add to int32")],
    kernels=_kernels("+", "alpha * other"),
)
def add(x: Real[Array, "*shape"], other: float, alpha: float = 1.0) -> Array:
    """x + alpha * other; int32 wraps."""
    with np.errstate(all="ignore"):
        return np.asarray(x + _number(x, alpha * other))


@op(
    "aten.sub.Scalar",
    out=Real[Array, "*shape"],
    out_variants=["aten.sub.Scalar_out"],
    rules=[rule(_fits("alpha * other"), "int32 elements less a fraction are not int32")],
    kernels=_kernels("-", "alpha * other"),
)
def sub(x: Real[Array, "*shape"], other: float, alpha: float = 1.0) -> Array:
    """x - alpha * other; int32 wraps."""
    with np.errstate(all="ignore"):
        return np.asarray(x - _number(x, alpha * other))


@op(
    "aten.mul.Scalar",
    out=Real[Array, "*shape"],
    out_variants=["aten.mul.Scalar_out"],
    rules=[rule(_fits("other"), "int32 elements times a fraction are not int32")],
    kernels=_kernels("*", "other"),
)
def mul(x: Real[Array, "*shape"], other: float) -> Array:
    """x * other; int32 wraps."""
    with np.errstate(all="ignore"):
        return np.asarray(x * _number(x, other))


@op(
    "aten.div.Scalar",
    out=Float32[Array, "*shape"],
    out_variants=["aten.div.Scalar_out"],
    kernels=[_kernels("/", "other")[0]],
)
def div(x: Float32[Array, "*shape"], other: float) -> Array:
    """x / other; infinity or NaN for zero."""
    with np.errstate(all="ignore"):
        return np.asarray(x / _number(x, other))
