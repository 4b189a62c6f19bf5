"""Integers of a program that only a call's inputs tell: sizes of dynamic axes and positions.

A method with such integers is built anew for the values that a call brings (a *specialization*);
everything after building then sees plain numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nybble.contract import Array
from nybble.errors import ContractError

__all__ = ["SYMBOLIC", "Specialization", "Symbol"]

SYMBOLIC: Mapping[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
}
"""Python operators that programs apply to symbolic integers."""


@dataclass(frozen=True)
class Symbol:
    """An element of an integer input, read on the host when the method is called."""

    input: int
    element: int


@dataclass(frozen=True)
class Specialization:
    """What a call's inputs say: the shape of each, and the value of each symbol met so far."""

    shapes: tuple[tuple[int, ...], ...] | None = None
    values: Mapping[Symbol, int] = field(default_factory=dict)

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for inputs that need the same graph."""
        order = sorted(self.values, key=lambda s: (s.input, s.element))
        return (self.shapes, tuple((s.input, s.element, self.values[s]) for s in order))

    @staticmethod
    def of(inputs: Sequence[Array], symbols: Iterable[Symbol]) -> Specialization:
        """The specialization that checked inputs ask for.

        Raises:
            ContractError: an input is too small to hold its symbol.
        """
        values = {}
        for symbol in symbols:
            flat = inputs[symbol.input].reshape(-1)
            if symbol.element >= flat.size:
                raise ContractError(f"input_{symbol.input}: it has no element {symbol.element}")
            values[symbol] = int(flat[symbol.element])
        return Specialization(tuple(array.shape for array in inputs), values)
