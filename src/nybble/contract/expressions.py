"""Restricted expressions over axis names, attributes and constants.

Grids, parameters and conditions are data: checked when an operator is declared, printable in the
documentation, evaluated when a plan is made. The grammar is Python's, without attributes,
assignment or any name that is not declared.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import CodeType
from typing import Any

import numpy as np

from .strides import (
    broadcast_axes,
    expanded_axes,
    flipped_axes,
    flipped_offset,
    gathered_axes,
    kept_axes,
    permuted_axes,
    reduced_axes,
    repeated_axes,
    sliced_axes,
    unfolded_axes,
)

__all__ = ["FUNCTIONS", "Expression"]


def _cdiv(a: int, b: int) -> int:
    return -(-a // b)


def _round_up(a: int, b: int) -> int:
    return -(-a // b) * b


def _numel(shape: Sequence[int]) -> int:
    return math.prod(shape)


def _reciprocal(scale: float) -> float:
    """``inv(s)`` of the operators' contract: taken in double, then rounded once to float32."""
    return float(np.float32(1.0 / scale))


def _conv_out(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """Extent of a convolution's output along one axis (PyTorch's formula)."""
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def _pool_out(
    size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool
) -> int:
    """Extent of a pooling's output: a window may hang over the end in ceil mode, if it begins
    inside the input or its left padding (PyTorch's formula).
    """
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    extent = (_cdiv(span, stride) if ceil_mode else span // stride) + 1
    return extent - 1 if ceil_mode and (extent - 1) * stride >= size + padding else extent


def _stride_of(shape: Sequence[int], axis: int) -> int:
    """Row-major stride of ``axis``, in elements."""
    return math.prod(shape[axis + 1 :])


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "cdiv": _cdiv,
    "round_up": _round_up,
    "numel": _numel,
    "reciprocal": _reciprocal,
    "conv_out": _conv_out,
    "pool_out": _pool_out,
    "stride_of": _stride_of,
    "broadcast_axes": broadcast_axes,
    "permuted_axes": permuted_axes,
    "expanded_axes": expanded_axes,
    "kept_axes": kept_axes,
    "reduced_axes": reduced_axes,
    "sliced_axes": sliced_axes,
    "gathered_axes": gathered_axes,
    "flipped_axes": flipped_axes,
    "flipped_offset": flipped_offset,
    "repeated_axes": repeated_axes,
    "unfolded_axes": unfolded_axes,
    "min": min,
    "max": max,
    "abs": abs,
    "len": len,
    "int": int,
    "float": float,
    "sum": sum,
    "prod": math.prod,
    "tuple": tuple,
}

_GLOBALS: dict[str, Any] = {"__builtins__": {}, **FUNCTIONS}
_ALLOWED = (
    ast.Expression, ast.Constant, ast.Name, ast.Load, ast.Tuple, ast.Call, ast.Subscript, ast.Slice,
    ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Div, ast.Mod, ast.Pow,
    ast.UnaryOp, ast.USub, ast.Not, ast.BoolOp, ast.And, ast.Or, ast.IfExp, ast.BitAnd,
    ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn,
    ast.Is, ast.IsNot,
)  # fmt: skip


@cache
def _compiled(text: str) -> tuple[frozenset[str], CodeType]:
    """Free names and code of a text; operators declare the same few thousands of times."""
    tree = ast.parse(text, mode="eval")
    names = set()
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED):
            kind = type(node).__name__
            raise ValueError(f"expression {text!r}: {kind} is not allowed")  # noqa: TRY004
        if isinstance(node, ast.Name):
            names.add(node.id)
    return frozenset(names - FUNCTIONS.keys()), compile(tree, f"<{text}>", "eval")


@dataclass(frozen=True)
class Expression:
    """A checked expression; ``names`` are the free names it reads."""

    text: str
    names: frozenset[str] = field(init=False, repr=False, compare=False)
    _code: CodeType = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names, code = _compiled(self.text)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "_code", code)

    def check(self, known: Sequence[str], where: str) -> None:
        """Raise ValueError naming every free name that is not in ``known``."""
        unknown = sorted(self.names - set(known))
        if unknown:
            raise ValueError(
                f"{where}: expression {self.text!r} reads {', '.join(unknown)}; "
                f"known are {', '.join(sorted(known))}"
            )

    def evaluate(self, names: Mapping[str, Any]) -> Any:
        """The value under ``names``; its type is whatever the expression yields."""
        scope = {name: names[name] for name in self.names}
        return eval(self._code, _GLOBALS, scope)

    def __str__(self) -> str:
        return self.text
