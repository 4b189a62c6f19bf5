"""Builds graphs in Python: inputs, constants, states and calls, by the contract's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from nybble.contract import (
    COMPUTED,
    DTYPES,
    EXPANSIONS,
    REGISTRY,
    Array,
    Expansion,
    dtype_of,
)
from nybble.errors import ContractError, UnsupportedProgramError

from .arithmetic import Arithmetic
from .ir import Call, Graph, State, TensorSpec, Value, make_call
from .verify import verify_graph

__all__ = ["GraphBuilder"]


class GraphBuilder:
    """Collects the calls of one graph. Values are immutable; a state is replaced, not written.

    ``math`` holds the usual arithmetic (``b.math.mul(x, 2.0)``); every operator of the registry is
    reachable through :meth:`call`.
    """

    def __init__(self, name: str = "forward") -> None:
        self.name = name
        self.calls: list[Call] = []
        self.origin = "python"
        self.math = Arithmetic(self)
        self._inputs: list[Value] = []
        self._states: dict[Value, tuple[str, Array]] = {}
        self._finals: dict[Value, Value] = {}
        self._constants: dict[bytes, Value] = {}
        self._numbers = count()

    def input(self, name: str, dtype: str, shape: Sequence[int]) -> Value:
        """A new input; ``dtype`` is numpy's name of an element type.

        Raises:
            ContractError: nybble has no such element type.
        """
        if dtype not in DTYPES:
            raise ContractError(
                f"input {name!r}: {dtype!r} is no element type; there are {', '.join(DTYPES)}"
            )
        value = Value(name, DTYPES[dtype], tuple(int(size) for size in shape))
        self._inputs.append(value)
        return value

    def constant(self, data: npt.ArrayLike) -> Value:
        """A constant. Python floats become float32 and integers int32, as graphs compute.

        Raises:
            ContractError: the array's element type has no form in a graph.
        """
        array = np.asarray(data)
        if not isinstance(data, (np.ndarray, np.generic)) and array.dtype.kind in "fi":
            array = array.astype(np.float32 if array.dtype.kind == "f" else np.int32)
        dtype = dtype_of(array)
        if dtype is None:
            raise ContractError(f"a constant of {array.dtype} has no form in a graph")
        if array.size > 1:
            return Value(self._fresh("constant"), dtype, array.shape, array)
        key = repr((dtype.name, array.shape)).encode() + array.tobytes()
        if key not in self._constants:
            self._constants[key] = Value(self._fresh("constant"), dtype, array.shape, array)
        return self._constants[key]

    def state(self, name: str, initial: Array) -> Value:
        """A value that persists between runs; unchanged until :meth:`update` replaces it.

        Raises:
            ContractError: the name is taken, or no operator takes the element type.
        """
        if any(name == taken for taken, _ in self._states.values()):
            raise ContractError(f"there is a state {name!r} already; names must be unique")
        dtype = dtype_of(initial)
        if dtype is None or dtype.name not in COMPUTED:
            raise ContractError(
                f"state {name!r}: no operator takes {initial.dtype}; a state holds one of "
                f"{', '.join(COMPUTED)}"
            )
        value = Value(name, dtype, initial.shape)
        self._states[value] = (name, initial)
        self._finals[value] = value
        return value

    def update(self, state: Value, content: Value) -> None:
        """Let ``state`` hold ``content`` after a run; both must have one type.

        Raises:
            ContractError: ``state`` is no state of this graph, or the types differ.
        """
        if state not in self._states:
            raise ContractError(f"%{state.name} is no state of this graph")
        if (state.dtype, state.shape) != (content.dtype, content.shape):
            raise ContractError(
                f"state {state.name!r} is {state}; it cannot hold %{content.name}, {content}"
            )
        self._finals[state] = content

    def call(self, operator: str, **arguments: Any) -> Any:
        """The result of an operator, several as a tuple.

        Args:
            operator: its serialized name, such as ``aten.mul.Tensor``.
            arguments: values and attributes by the contract's names; numpy arrays and, for
                tensors, numbers become constants.

        Raises:
            UnsupportedProgramError: there is no such operator.
            ContractError: the arguments break its contract.
        """
        if operator in EXPANSIONS:
            return self._expanded(EXPANSIONS[operator], arguments)
        declared = REGISTRY.get(operator)
        if declared is None:
            raise UnsupportedProgramError(f"{operator} is not an operator of nybble", [operator])
        given = dict(arguments)
        for argument in declared.arguments:
            item: Any = given.get(argument.name)
            number = argument.is_tensor and isinstance(item, (int, float))
            if number or isinstance(item, (np.ndarray, np.generic)):
                given[argument.name] = self.constant(item)
        call = make_call(declared, given, lambda: self._fresh(""), self.origin)
        self.calls.append(call)
        return call.outputs[0] if len(call.outputs) == 1 else call.outputs

    def include(
        self, calls: Sequence[Call], known: Mapping[Value, Value] | None = None
    ) -> dict[Value, Value]:
        """Repeat calls of another graph, with ``known`` values replaced.

        Returns:
            The value here of each value there, ``known`` included.
        """
        values = dict(known or {})
        for call in calls:
            arguments = dict(call.arguments)
            for name, value in call.inputs.items():
                arguments[name] = values.get(value, value)
            copied = make_call(call.operator, arguments, lambda: self._fresh(""), call.origin)
            self.calls.append(copied)
            values.update(zip(call.outputs, copied.outputs, strict=True))
        return values

    def finish(self, outputs: Mapping[str, Value] | Sequence[Value]) -> Graph:
        """The graph that gives ``outputs``, by name or in order, its grammar checked."""
        if not isinstance(outputs, Mapping):
            outputs = {f"output_{i}": value for i, value in enumerate(outputs)}
        graph = Graph(
            self.name,
            tuple(self._inputs),
            tuple(outputs.values()),
            tuple(self.calls),
            tuple(TensorSpec(v.name, v.dtype.name, v.shape) for v in self._inputs),
            tuple(TensorSpec(name, v.dtype.name, v.shape) for name, v in outputs.items()),
            tuple(
                State(name, value, self._finals[value], initial)
                for value, (name, initial) in self._states.items()
            ),
        )
        verify_graph(graph, "it was built")
        return graph

    def _expanded(self, expansion: Expansion, arguments: Mapping[str, Any]) -> Any:
        """The results of an operator that stands for others."""
        unknown = [name for name in arguments if name not in expansion.arguments]
        if unknown:
            raise ContractError(
                f"{expansion.name}: it has no argument {', '.join(map(repr, unknown))}; its "
                f"arguments are {', '.join(expansion.arguments)}"
            )
        results = expansion(self.call, [arguments.get(name) for name in expansion.arguments])
        return results[0] if len(results) == 1 else results

    def _fresh(self, prefix: str) -> str:
        return f"{prefix}{next(self._numbers)}"
