"""The intermediate representation: typed values, calls with named arguments, one graph a method."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nybble.contract import Array, BoundCall, DType, Operator, bind
from nybble.contract.dtypes import DTYPES

from .symbols import Symbol

__all__ = ["Call", "Graph", "State", "TensorSpec", "Value", "make_call", "nbytes"]


@dataclass(frozen=True)
class TensorSpec:
    """What a caller passes or receives: name, element type (numpy's name) and shape.

    A ``dynamic`` tensor has the rank of ``shape``, and sizes up to it.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    dynamic: bool = False

    def __str__(self) -> str:
        most = "at most " if self.dynamic else ""
        return f"{self.name}: {most}{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor in a graph. Equal only to itself; ``constant`` holds the data of a constant."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    constant: Array | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, eq=False)
class Call:
    """One operator applied to values and attributes. ``origin`` says where in the file it stood.

    ``source`` is the call of a program whose place this one takes, alone or with others.
    """

    bound: BoundCall
    outputs: tuple[Value, ...]
    origin: str
    source: Call | None = None

    @property
    def operator(self) -> Operator:
        """The declaration of what is called."""
        return self.bound.operator

    @property
    def arguments(self) -> Mapping[str, Any]:
        """Values and attributes by the contract's names."""
        return self.bound.arguments

    @property
    def inputs(self) -> dict[str, Value]:
        """The tensors that the call reads, by name."""
        return self.bound.tensors

    def replaced(self, **arguments: Any) -> Call:
        """The same call with other arguments, checked again."""
        bound = bind(self.operator, {**self.arguments, **arguments})
        return Call(bound, self.outputs, self.origin, self.source)


@dataclass(frozen=True, eq=False)
class State:
    """A value that persists between runs: it is ``value`` at the start and ``final`` at the end.

    Graphs stay functional: whatever writes a state makes a new value, and the planner puts the
    last one where the state lies. ``initial`` is the content before the first run.
    """

    name: str
    value: Value
    final: Value
    initial: Array = field(repr=False)


@dataclass(frozen=True, eq=False)
class Graph:
    """A method: inputs, calls in order, outputs, and states.

    ``input_specs`` and ``output_specs`` are the caller's view; their element types may be wider
    (int64, float64) than the values', and are converted at the border. ``symbols`` are the integers
    that its inputs hold, and the values for which it was built.
    """

    name: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    calls: tuple[Call, ...]
    input_specs: tuple[TensorSpec, ...]
    output_specs: tuple[TensorSpec, ...]
    states: tuple[State, ...] = ()
    symbols: Mapping[Symbol, int] = field(default_factory=dict)

    @property
    def is_dynamic(self) -> bool:
        """Whether other inputs may need another graph."""
        return bool(self.symbols) or any(spec.dynamic for spec in self.input_specs)

    def with_calls(
        self,
        calls: Sequence[Call],
        outputs: Sequence[Value] | None = None,
        states: Sequence[State] | None = None,
    ) -> Graph:
        """The same graph with other calls (and outputs, and states)."""
        return replace(
            self,
            calls=tuple(calls),
            outputs=self.outputs if outputs is None else tuple(outputs),
            states=self.states if states is None else tuple(states),
        )

    @property
    def results(self) -> tuple[Value, ...]:
        """What the graph is run for: its outputs and the final values of its states."""
        return (*self.outputs, *(state.final for state in self.states))

    def users(self) -> dict[Value, list[Call]]:
        """The calls that read each value, in order; a value nobody reads is absent."""
        users: dict[Value, list[Call]] = {}
        for call in self.calls:
            for value in dict.fromkeys(call.inputs.values()):
                users.setdefault(value, []).append(call)
        return users

    def producers(self) -> dict[Value, Call]:
        """The call that makes each value."""
        return {value: call for call in self.calls for value in call.outputs}

    def substitute(self, replacements: Mapping[Value, Value]) -> Graph:
        """The graph with values replaced wherever they are read."""
        if not replacements:
            return self

        def final(value: Value) -> Value:
            while value in replacements:
                value = replacements[value]
            return value

        calls = []
        for call in self.calls:
            changed = {n: final(v) for n, v in call.inputs.items() if v in replacements}
            calls.append(call.replaced(**changed) if changed else call)
        states = [replace(state, final=final(state.final)) for state in self.states]
        return self.with_calls(calls, [final(v) for v in self.outputs], states)


def make_call(
    operator: Operator, arguments: Mapping[str, Any], name: Callable[[], str], origin: str
) -> Call:
    """A call with fresh output values."""
    bound = bind(operator, arguments)
    outputs = tuple(Value(name(), t.dtype, t.shape) for t in bound.outputs)
    return Call(bound, outputs, origin)


def nbytes(value: Value) -> int:
    """Bytes of a value's elements."""
    return math.prod(value.shape) * DTYPES[value.dtype.name].itemsize
