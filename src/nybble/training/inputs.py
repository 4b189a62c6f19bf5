"""A trainer's inputs: of the sizes, and with the integers, for which its program was planned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nybble.contract import Array
from nybble.errors import ContractError
from nybble.graph import Graph
from nybble.program import Method

__all__ = ["fitting_inputs", "integers_of", "plan_for"]


def fitting_inputs(method: Method, graph: Graph, values: Sequence[Any]) -> list[Array]:
    """The program's inputs as ``graph`` takes them.

    Raises:
        ContractError: other sizes, or another integer that calls of the program read (a
            position), than those for which the trainer's graph was built.
    """
    arrays = method.converted(values)
    for array, spec, value in zip(arrays, method.inputs, graph.inputs, strict=True):
        if array.shape != value.shape:
            raise ContractError(
                f"{spec.name}: expected {list(value.shape)}, received {list(array.shape)}; a "
                "trainer keeps the sizes that the program had when it was made: the largest, "
                "or those of its last call"
            )
    for symbol, expected in graph.symbols.items():
        received = int(arrays[symbol.input].reshape(-1)[symbol.element])
        if received != expected:
            raise ContractError(
                f"{method.inputs[symbol.input].name}: expected {expected} as element "
                f"{symbol.element}, received {received}; a trainer keeps the integers that "
                "positions and sizes are taken from: 0, or those of the program's last call "
                "before it was made"
            )
    return arrays


def integers_of(graph: Graph) -> list[tuple[int, int, int]]:
    """Input, element and value of each integer for which a graph was built."""
    return [(symbol.input, symbol.element, value) for symbol, value in graph.symbols.items()]


def plan_for(
    method: Method, shapes: Sequence[Sequence[int]], integers: Sequence[tuple[int, int, int]]
) -> None:
    """Plan a method for the sizes and the integers that a trainer had.

    Raises:
        ContractError: the method has no such inputs.
    """
    if not method.source.is_dynamic:
        return
    pairs = zip(shapes, method.inputs, strict=True)
    arrays = [np.zeros(shape, spec.dtype) for shape, spec in pairs]
    for number, element, value in integers:
        arrays[number].reshape(-1)[element] = value
    method.arrays(arrays)
