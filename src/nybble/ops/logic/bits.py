"""and, or, xor, not: of truth values, and of the bits of int32."""

from collections.abc import Callable
from typing import Any

import numpy as np

from nybble.contract import Array, Bool, Kernel, TensorAnnotation, op, rule
from nybble.contract.strides import broadcast_shape
from nybble.ops.logic.kernels import map_kernels

__all__: list[str] = []

Shape = tuple[int, ...]
Bits = TensorAnnotation(("bool", "int32"), "...")
_AXES = {"axes": "broadcast_axes(x, other)"}


def _out_shape(x: Shape, other: Shape, **_: Any) -> Shape:
    return broadcast_shape(x, other)


def _same_shape(x: Shape, **_: Any) -> Shape:
    return x


def _bytes(value: str, when: str = "True") -> list[Kernel]:
    operands = ("x", "other") if "other" in value else ("x",)
    return map_kernels(value, operands, as_bytes=(*operands, "out"), when=when)


def _declare(name: str, sign: str, function: Callable[..., Array]) -> None:
    """``logical_NAME`` of truth values, and ``bitwise_NAME`` of int32 too."""

    def logical(x: Bool[Array, "..."], other: Bool[Array, "..."]) -> Array:
        return np.asarray(function(x, other))

    logical.__doc__ = f"x {name} other of truth values, broadcast."
    op(
        f"aten.logical_{name}.default",
        out=Bool[Array, "..."],
        out_variants=[f"aten.logical_{name}.out"],
        derived=_AXES,
        kernels=_bytes(f"x_4 {sign} other_4"),
        shape=_out_shape,
        exact=True,
    )(logical)

    def bitwise(x: Bits, other: Bits) -> Array:  # type: ignore[valid-type]
        return np.asarray(function(x, other))

    bitwise.__doc__ = f"x {name} other of truth values or of the bits of int32, broadcast."
    op(
        f"aten.bitwise_{name}.Tensor",
        out=Bits,
        out_variants=[f"aten.bitwise_{name}.Tensor_out"],
        derived=_AXES,
        rules=[rule("x_dtype == other_dtype", "both operands must have one element type")],
        kernels=[
            *_bytes(f"x_4 {sign} other_4", "x_dtype == 'bool'"),
            *map_kernels(f"x_4 {sign} other_4", ("x", "other"), when="x_dtype == 'int32'"),
        ],
        shape=_out_shape,
        exact=True,
    )(bitwise)


for _name, _sign, _function in [
    ("and", "&", np.bitwise_and), ("or", "|", np.bitwise_or), ("xor", "^", np.bitwise_xor),
]:  # fmt: skip
    _declare(_name, _sign, _function)

_NOT = "vec4<u32>(1u) ^ x_4"


@op(
    "aten.logical_not.default",
    out=Bool[Array, "*shape"],
    out_variants=["aten.logical_not.out"],
    kernels=_bytes(_NOT),
    exact=True,
)
def logical_not(x: Bool[Array, "*shape"]) -> Array:
    """True where x is false."""
    return np.logical_not(x)


@op(
    "aten.bitwise_not.default",
    out=Bits,
    out_variants=["aten.bitwise_not.out"],
    kernels=[
        *_bytes(_NOT, "x_dtype == 'bool'"),
        *map_kernels("~x_4", ("x",), when="x_dtype == 'int32'"),
    ],
    shape=_same_shape,
    exact=True,
)
def bitwise_not(x: Bits) -> Array:  # type: ignore[valid-type]
    """Truth values, or the bits of int32, inverted."""
    return np.asarray(np.invert(x))
