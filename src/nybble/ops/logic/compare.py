"""Comparisons of two broadcast operands, or of an operand with a number: a table."""

from collections.abc import Callable
from typing import Any

import numpy as np

from nybble.contract import Array, Bool, Real, f32, i32, op, rule
from nybble.contract.strides import broadcast_shape
from nybble.ops.logic.kernels import map_kernels, truth

__all__: list[str] = []

Shape = tuple[int, ...]
_INTEGER = "scalar == int(scalar) and -2**31 <= scalar < 2**31"
_WHOLE = f"x_dtype == 'int32' and abs(scalar) < 2.0**32 and {_INTEGER}"
# A double beyond float32 compares as infinity.
_SINGLE = "scalar if abs(scalar) < 2.0**128 or scalar != scalar else scalar * float('inf')"


def _out_shape(x: Shape, other: Shape, **_: Any) -> Shape:
    return broadcast_shape(x, other)


def _ordered(relation: str, left: str, right: str) -> str:
    """The comparison of floats, NaN told by its bits: compilers may assume there is none."""
    nan = f"(is_nan_of({left}) | is_nan_of({right}))"
    if relation == "!=":
        return truth(f"({left} != {right}) | {nan}")
    return truth(f"({left} {relation} {right}) & !{nan}")


def _declare_tensor(name: str, relation: str, function: Callable[..., Array]) -> None:
    def reference(x: Real[Array, "..."], other: Real[Array, "..."]) -> Array:
        return np.asarray(function(x, other))

    reference.__doc__ = (
        f"x {relation} other, broadcast; {'true' if name == 'ne' else 'false'} where either is NaN."
    )
    op(
        f"aten.{name}.Tensor",
        out=Bool[Array, "..."],
        out_variants=[f"aten.{name}.Tensor_out"],
        derived={"axes": "broadcast_axes(x, other)"},
        rules=[rule("x_dtype == other_dtype", "both operands must have one element type")],
        kernels=[
            *map_kernels(_ordered(relation, "x_4", "other_4"), ("x", "other"), as_bytes=("out",),
                         when="x_dtype == 'float32'"),
            *map_kernels(truth(f"x_4 {relation} other_4"), ("x", "other"), as_bytes=("out",),
                         when="x_dtype == 'int32'"),
        ],
        shape=_out_shape,
        exact=True,
    )(reference)  # fmt: skip


def _declare_scalar(name: str, relation: str, function: Callable[..., Array]) -> None:
    def reference(x: Real[Array, "*shape"], scalar: float) -> Array:
        whole = x.dtype == np.int32 and abs(scalar) < 2.0**31 and scalar == int(scalar)
        kind = np.int32 if whole else np.float32
        with np.errstate(all="ignore"):
            return np.asarray(function(x.astype(kind), kind(scalar)))

    reference.__doc__ = (
        f"x {relation} scalar; {'true' if name == 'ne' else 'false'} for NaN. int32 elements and "
        "a fraction are compared as float32."
    )
    float_scalar = "vec4<f32>(params.scalar)"
    op(
        f"aten.{name}.Scalar",
        out=Bool[Array, "*shape"],
        out_variants=[f"aten.{name}.Scalar_out"],
        kernels=[
            *map_kernels(truth(f"x_4 {relation} vec4<i32>(params.scalar)"), ("x",),
                         as_bytes=("out",), params={"scalar": i32("int(scalar)")}, when=_WHOLE),
            *map_kernels(_ordered(relation, "vec4<f32>(x_4)", float_scalar), ("x",),
                         as_bytes=("out",), params={"scalar": f32(_SINGLE)},
                         when=f"not ({_WHOLE})"),
        ],
        exact=True,
    )(reference)  # fmt: skip


for _name, _relation, _function in [
    ("eq", "==", np.equal),
    ("ne", "!=", np.not_equal),
    ("lt", "<", np.less),
    ("le", "<=", np.less_equal),
    ("gt", ">", np.greater),
    ("ge", ">=", np.greater_equal),
]:
    _declare_tensor(_name, _relation, _function)
    _declare_scalar(_name, _relation, _function)
