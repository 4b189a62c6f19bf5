"""Quotients rounded to integers."""

import numpy as np

from nybble.contract import Array, Kernel, Real, op, rule
from nybble.ops.elementwise.binary import AXES, RULES, binary_kernels, out_shape

__all__ = ["div_mode"]

_INTEGERS = {
    "trunc": "a / b",
    # WGSL divides toward zero; division by zero gives the dividend. Not by a % b, of which drivers
    # make what they like where an operand is negative.
    "floor": "a / b - select(vec4<i32>(), vec4<i32>(1), (b != vec4<i32>()) & (a / b * b != a)"
    " & ((a < vec4<i32>()) != (b < vec4<i32>())))",
}
_FLOATS = {"trunc": "truncated_quotient_of(a, b)", "floor": "floor_quotient_of(a, b)"}


def _kernels() -> list[Kernel]:
    return [
        kernel
        for dtype, table in [("float32", _FLOATS), ("int32", _INTEGERS)]
        for mode, value in table.items()
        for kernel in binary_kernels(value, when=f"x_dtype == '{dtype}' and mode == '{mode}'")
    ]


def _rounded(x: Array, other: Array, mode: str) -> Array:
    with np.errstate(all="ignore"):
        if x.dtype == np.int32:
            wide, below = x.astype(np.int64), np.where(other == 0, 1, other).astype(np.int64)
            quotient = wide // below
            if mode == "trunc":
                quotient = np.sign(wide) * np.sign(below) * (np.abs(wide) // np.abs(below))
            return np.asarray(quotient.astype(np.int32))
        if mode == "trunc":
            return np.asarray(np.trunc(x / other))
        # A double tells a quotient of two float32 from every integer that it is not.
        floors = np.floor(x.astype(np.float64) / other)
        # A finite number by infinity lies beside zero, on the side that the signs tell.
        floors = np.where(np.isinf(other) & (x * np.sign(other) < 0), -1, floors)
        floors = np.where(np.isinf(x) & (other != 0), np.nan, floors)
        return np.asarray(floors.astype(np.float32))


@op(
    "aten.div.Tensor_mode",
    out=Real[Array, "..."],
    out_variants=["aten.div.out_mode"],
    derived=AXES,
    rules=[*RULES, rule("mode in ('floor', 'trunc')", "the mode must be 'floor' or 'trunc'")],
    kernels=_kernels(),
    shape=out_shape,
)
def div_mode(x: Real[Array, "..."], other: Real[Array, "..."], mode: str) -> Array:
    """x / other rounded down ('floor') or toward zero ('trunc'), broadcast.

    Down means from the exact quotient, toward zero from its nearest float32, as in PyTorch. By
    zero: infinity or NaN, and an integer stays as it is. Else infinity rounded down is NaN.
    """
    return _rounded(x, other, mode)
