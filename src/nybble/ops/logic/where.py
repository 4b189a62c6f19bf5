"""Selection between two operands."""

from typing import Any

import numpy as np

from nybble.contract import AnyTensor, Array, Bool, op, rule
from nybble.contract.strides import broadcast_shape
from nybble.ops.logic.kernels import map_kernels

__all__ = ["where"]

Shape = tuple[int, ...]
_VALUE = "select(other_4, x_4, condition_4 != vec4<u32>())"
_NAMES = ("condition", "x", "other")


def _out_shape(condition: Shape, x: Shape, other: Shape, **_: Any) -> Shape:
    return broadcast_shape(condition, x, other)


@op(
    "aten.where.self",
    out=AnyTensor[Array, "..."],
    out_variants=["aten.where.self_out"],
    derived={"axes": "broadcast_axes(condition, x, other)"},
    rules=[rule("x_dtype == other_dtype", "both operands must have one element type")],
    kernels=[
        *map_kernels(_VALUE, _NAMES, as_bytes=("condition",),
                     when="x_dtype in ('float32', 'int32')"),
        *map_kernels(_VALUE, _NAMES, as_bytes=(*_NAMES, "out"),
                     when="x_dtype not in ('float32', 'int32')"),
    ],
    shape=_out_shape,
    exact=True,
)  # fmt: skip
def where(
    condition: Bool[Array, "..."], x: AnyTensor[Array, "..."], other: AnyTensor[Array, "..."]
) -> Array:
    """x where the condition holds, else other; all three broadcast."""
    return np.where(condition, x, other)
