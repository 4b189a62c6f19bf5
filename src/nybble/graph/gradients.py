"""The table of gradients: one row an operator, declared in ``gradients.py`` beside it.

A row is a function ``row(b, call, *d_outs)``: ``b`` builds the graph, ``call`` is the forward
call, ``d_outs`` are the gradients of its results (None where a result does not matter). It gives
the gradients of arguments by name; the gradient of a broadcast argument is summed for it. None
says that nothing flows through an argument; one left out has no gradient, which is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from .ir import Value

__all__ = ["GRADIENTS", "NO_GRADIENT", "Row", "gradient", "no_gradient"]

Row: TypeAlias = "Callable[..., Mapping[str, Value | None]]"

GRADIENTS: dict[str, Row] = {}
"""Rows by the operator's declared name."""

NO_GRADIENT: dict[str, str] = {}
"""Why an operator has none, by its declared name."""


def gradient(*operators: str) -> Callable[[Row], Row]:
    """Declare a row for ``operators``.

    Raises:
        ValueError: one of them has a row already.
    """

    def declare(row: Row) -> Row:
        for operator in operators:
            _refuse_second(operator)
            GRADIENTS[operator] = row
        return row

    return declare


def no_gradient(*operators: str, because: str) -> None:
    """Declare that ``operators`` have no gradient; ``because`` completes the error's sentence.

    Raises:
        ValueError: one of them has a row already.
    """
    for operator in operators:
        _refuse_second(operator)
        NO_GRADIENT[operator] = because


def _refuse_second(operator: str) -> None:
    if operator in GRADIENTS or operator in NO_GRADIENT:
        raise ValueError(f"the gradient of {operator} is declared twice")
