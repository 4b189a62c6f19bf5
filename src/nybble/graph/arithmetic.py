"""Arithmetic on the values of a graph under construction: what losses and gradients are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from .ir import Value

if TYPE_CHECKING:
    from .builder import GraphBuilder

__all__ = ["Arithmetic"]

Operand: TypeAlias = "Value | float"


class Arithmetic:
    """Each method appends calls to its builder and gives the result. Operands broadcast."""

    def __init__(self, builder: GraphBuilder) -> None:
        self._builder = builder

    def add(self, x: Operand, other: Operand) -> Value:
        """x + other."""
        return self._binary("aten.add.Tensor", x, other)

    def sub(self, x: Operand, other: Operand) -> Value:
        """x - other."""
        return self._binary("aten.sub.Tensor", x, other)

    def mul(self, x: Operand, other: Operand) -> Value:
        """x * other."""
        return self._binary("aten.mul.Tensor", x, other)

    def div(self, x: Operand, other: Operand) -> Value:
        """x / other."""
        return self._binary("aten.div.Tensor", x, other)

    def neg(self, x: Value) -> Value:
        """-x."""
        return self._unary("aten.neg.default", x)

    def exp(self, x: Value) -> Value:
        """e to the power of x."""
        return self._unary("aten.exp.default", x)

    def log(self, x: Value) -> Value:
        """Natural logarithm."""
        return self._unary("aten.log.default", x)

    def square(self, x: Value) -> Value:
        """x * x."""
        return self.mul(x, x)

    def sum(self, x: Value, dim: Sequence[int] | None = None, *, keepdim: bool = False) -> Value:
        """Sum over the axes ``dim``, all of them where None."""
        axes = None if dim is None else tuple(dim)
        value: Value = self._builder.call("aten.sum.dim_IntList", x=x, dim=axes, keepdim=keepdim)
        return value

    def mean(self, x: Value, dim: Sequence[int] | None = None, *, keepdim: bool = False) -> Value:
        """Mean over the axes ``dim``, all of them where None."""
        axes = None if dim is None else tuple(dim)
        value: Value = self._builder.call("aten.mean.dim", x=x, dim=axes, keepdim=keepdim)
        return value

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """The same elements under another shape; nothing is computed."""
        if tuple(shape) == x.shape:
            return x
        value: Value = self._builder.call("aten.view_copy.default", x=x, size=tuple(shape))
        return value

    def permute(self, x: Value, dims: Sequence[int]) -> Value:
        """The axes of x in the order ``dims``."""
        value: Value = self._builder.call("aten.permute_copy.default", x=x, dims=tuple(dims))
        return value

    def transpose(self, x: Value) -> Value:
        """The last two axes of x swapped."""
        order = list(range(len(x.shape)))
        order[-2:] = order[-1], order[-2]
        return self.permute(x, order)

    def matmul(self, x: Value, other: Value) -> Value:
        """Product of two matrices, or of two batches of matrices of one size."""
        operator = "aten.mm.default" if len(x.shape) == 2 else "aten.bmm.default"
        value: Value = self._builder.call(operator, x=x, weight=other)
        return value

    def expand(self, x: Value, shape: Sequence[int]) -> Value:
        """x repeated along axes of one element, and along new leading ones."""
        if tuple(shape) == x.shape:
            return x
        value: Value = self._builder.call("aten.expand_copy.default", x=x, size=tuple(shape))
        return value

    def cast(self, x: Value, dtype: str) -> Value:
        """The elements of x as another type: ``float32``, ``int32`` or ``bool``."""
        if x.dtype.name == dtype:
            return x
        value: Value = self._builder.call("aten._to_copy.default", x=x, out_dtype=dtype)
        return value

    def sum_to(self, x: Value, shape: Sequence[int]) -> Value:
        """x summed over the axes along which ``shape`` was broadcast to x's shape."""
        lead = len(x.shape) - len(shape)
        repeated = [
            lead + i for i, size in enumerate(shape) if size == 1 and x.shape[lead + i] != 1
        ]
        axes = [*range(lead), *repeated]
        return self.reshape(self.sum(x, axes) if axes else x, shape)

    def _unary(self, operator: str, x: Value) -> Value:
        value: Value = self._builder.call(operator, x=x)
        return value

    def _binary(self, operator: str, x: Operand, other: Operand) -> Value:
        one, two = (
            v if isinstance(v, Value) else self._builder.constant(np.float32(v)) for v in (x, other)
        )
        value: Value = self._builder.call(operator, x=one, other=two)
        return value
