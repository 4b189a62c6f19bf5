"""Functions of two broadcast operands: a table of expressions, two shaders.

Operands have one element type. int32 arithmetic wraps.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nybble.contract import Array, Float32, Kernel, Param, Real, f32, i32, op, rule, u32
from nybble.contract.strides import broadcast_shape
from nybble.ops.strided import MOST_AXES, axis_params

__all__ = ["AXES", "RULES", "binary_kernels", "out_shape"]

Shape = tuple[int, ...]
AXES = {"axes": "broadcast_axes(x, other)"}
RULES = [
    rule("x_dtype == other_dtype", "both operands must have one element type"),
    rule(f"len(axes) <= {MOST_AXES}", f"operands are taken up to rank {MOST_AXES}"),
]


def out_shape(x: Shape, other: Shape, **_: Any) -> Shape:
    """The shape that both operands broadcast to."""
    return broadcast_shape(x, other)


def binary_kernels(
    value: str, params: dict[str, Param] | None = None, when: str = "True"
) -> list[Kernel]:
    """Flat kernels for equal shapes and for a one-element operand, then any broadcast.

    ``value`` is WGSL in ``a`` and ``b``, vectors of four of the element type.
    """
    flat = {"words": u32("cdiv(count, 4)"), **(params or {})}
    quads = {"x": 4, "other": 4, "out": 4}
    return [
        _flat(value, flat, quads, f"({when}) and numel(x) == count and numel(other) == count"),
        _flat(value, flat, {"x": 4, "out": 4},
              f"({when}) and numel(x) == count and numel(other) == 1"),
        Kernel(
            "binary_broadcast.wgsl",
            grid=("cdiv(words, THREADS)",),
            params={
                **flat,
                "elements": u32("count"),
                **axis_params("axes", "size", ["x_stride", "other_stride"]),
            },
            constants={
                "THREADS": 64,
                "VALUE": repr(value),
                "AXES": "len(axes)",
                "QUAD": "'vec4<f32>' if x_dtype == 'float32' else 'vec4<i32>'",
            },
            vectors={"out": 4},
            when=when,
        ),
    ]  # fmt: skip


def _flat(value: str, params: dict[str, Param], vectors: dict[str, int], when: str) -> Kernel:
    """Word by word; only where both operands are cut alike can the planner split the call."""
    whole = "other" in vectors
    return Kernel(
        "binary_flat.wgsl",
        grid=("cdiv(words, THREADS)",),
        params=params,
        constants={
            "THREADS": 256,
            "VALUE": repr(value),
            "OTHER": repr("other[word]" if whole else "vec4(other[0])"),
        },
        vectors=vectors,
        when=when,
        split=whole,
    )


def _by_dtype(value: str, name: str, attribute: str) -> list[Kernel]:
    """Kernels with one scalar parameter of the element type."""
    return [
        *binary_kernels(value, {name: f32(attribute)}, "x_dtype == 'float32'"),
        *binary_kernels(value, {name: i32(f"int({attribute})")}, "x_dtype == 'int32'"),
    ]


_ALPHA_RULES: Sequence[Any] = [
    *RULES,
    rule(
        "x_dtype != 'int32' or (alpha == int(alpha) and -2**31 <= alpha < 2**31)",
        "alpha of int32 operands must be an int32",
    ),
]


def _scaled(other: Array, alpha: float) -> Array:
    return other if alpha == 1 else other * other.dtype.type(alpha)


@op(
    "aten.add.Tensor",
    out=Real[Array, "..."],
    out_variants=["aten.add.out"],
    derived=AXES,
    rules=_ALPHA_RULES,
    kernels=_by_dtype("a + params.alpha * b", "alpha", "alpha"),
    shape=out_shape,
)
def add(x: Real[Array, "..."], other: Real[Array, "..."], alpha: float = 1.0) -> Array:
    """x + alpha * other, broadcast; int32 wraps."""
    with np.errstate(all="ignore"):
        return np.asarray(x + _scaled(other, alpha))


@op(
    "aten.sub.Tensor",
    out=Real[Array, "..."],
    out_variants=["aten.sub.out"],
    derived=AXES,
    rules=_ALPHA_RULES,
    kernels=_by_dtype("a - params.alpha * b", "alpha", "alpha"),
    shape=out_shape,
)
def sub(x: Real[Array, "..."], other: Real[Array, "..."], alpha: float = 1.0) -> Array:
    """x - alpha * other, broadcast; int32 wraps."""
    with np.errstate(all="ignore"):
        return np.asarray(x - _scaled(other, alpha))


@op(
    "aten.mul.Tensor",
    out=Real[Array, "..."],
    out_variants=["aten.mul.out"],
    derived=AXES,
    rules=RULES,
    kernels=binary_kernels("a * b"),
    shape=out_shape,
)
def mul(x: Real[Array, "..."], other: Real[Array, "..."]) -> Array:
    """x * other, broadcast; int32 wraps."""
    with np.errstate(all="ignore"):
        return np.asarray(x * other)


def _extreme_kernels(relation: str, builtin: str) -> list[Kernel]:
    """NaN is told by its bits: WGSL's min and max may drop it."""
    chosen = f"select(b, a, a {relation} b)"
    return [
        *binary_kernels(
            f"select({chosen}, a + b, is_nan_of(a) | is_nan_of(b))", when="x_dtype == 'float32'"
        ),
        *binary_kernels(f"{builtin}(a, b)", when="x_dtype == 'int32'"),
    ]


@op(
    "aten.minimum.default",
    out=Real[Array, "..."],
    out_variants=["aten.minimum.out"],
    derived=AXES,
    rules=RULES,
    kernels=_extreme_kernels("<", "min"),
    shape=out_shape,
    exact=True,
)
def minimum(x: Real[Array, "..."], other: Real[Array, "..."]) -> Array:
    """The smaller of both, broadcast; NaN where either is NaN."""
    return np.asarray(np.minimum(x, other))


@op(
    "aten.maximum.default",
    out=Real[Array, "..."],
    out_variants=["aten.maximum.out"],
    derived=AXES,
    rules=RULES,
    kernels=_extreme_kernels(">", "max"),
    shape=out_shape,
    exact=True,
)
def maximum(x: Real[Array, "..."], other: Real[Array, "..."]) -> Array:
    """The larger of both, broadcast; NaN where either is NaN."""
    return np.asarray(np.maximum(x, other))


def _float_binary(
    name: str, out_name: str, value: str, function: Callable[[Array, Array], Array], about: str
) -> None:
    def reference(x: Float32[Array, "..."], other: Float32[Array, "..."]) -> Array:
        with np.errstate(all="ignore"):
            wide = function(x.astype(np.float64), other.astype(np.float64))
            return np.asarray(wide.astype(np.float32))

    reference.__doc__ = about
    op(
        name,
        out=Float32[Array, "..."],
        out_variants=[out_name],
        derived=AXES,
        rules=RULES,
        kernels=binary_kernels(value),
        shape=out_shape,
    )(reference)


_float_binary("aten.div.Tensor", "aten.div.out", "quotient_of(a, b)", np.divide,
              "x / other, broadcast; infinity or NaN for a zero divisor.")  # fmt: skip
_float_binary("aten.pow.Tensor_Tensor", "aten.pow.Tensor_Tensor_out", "power_of(a, b)", np.power,
              "x to the power of other, broadcast; NaN for a negative base and a fractional "
              "exponent.")  # fmt: skip
