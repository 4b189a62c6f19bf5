"""Operators that are written in terms of others when a graph is built.

For what no single signature can declare (lists of tensors, a variable number of results) and for
plain synonyms: no reference or kernel of their own, no work for later stages.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nybble.errors import ContractError

__all__ = ["EXPANSIONS", "Emit", "Expansion", "expansion"]

Emit = Callable[..., Any]
"""``emit(operator, **arguments)`` appends a call; its result, or a tuple of several."""


@dataclass(frozen=True)
class Expansion:
    """An operator's name, the arguments that a program stores, and the calls it stands for."""

    name: str
    arguments: tuple[str, ...]
    expand: Callable[..., Any]
    out_variants: tuple[str, ...]
    documentation: str

    def __call__(self, emit: Emit, values: Sequence[Any]) -> tuple[Any, ...]:
        """The results for arguments in a program's order.

        Raises:
            ContractError: the arguments do not fit.
        """
        if len(values) != len(self.arguments):
            raise ContractError(
                f"{self.name}: received {len(values)} arguments, expected {len(self.arguments)} "
                f"({', '.join(self.arguments)}); the program was made for another version"
            )
        try:
            results = self.expand(emit, *values)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise ContractError(f"{self.name}: its arguments do not fit: {error}") from error
        return results if isinstance(results, tuple) else (results,)


EXPANSIONS: dict[str, Expansion] = {}
"""Every expansion by serialized name, out-variants included."""


def expansion(
    name: str, *, out_variants: Sequence[str] = ()
) -> Callable[[Callable[..., Any]], Expansion]:
    """Declare an operator by the function that emits its calls.

    The function takes an :data:`Emit`, then the arguments in serialized order; it returns a value,
    or a tuple for a list of results.
    """

    def declare(function: Callable[..., Any]) -> Expansion:
        _, *arguments = inspect.signature(function).parameters
        declared = Expansion(
            name,
            tuple(arguments),
            function,
            tuple(out_variants),
            inspect.cleandoc(function.__doc__ or ""),
        )
        for key in (name, *out_variants):
            if key in EXPANSIONS:
                raise ValueError(f"operator {key} is declared twice")
            EXPANSIONS[key] = declared
        return declared

    return declare
