"""Graphs of one call, for tests and tools."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from nybble.contract import Array, Operator, dtype_of
from nybble.errors import ContractError

from .ir import Call, Graph, TensorSpec, Value, make_call

__all__ = ["call_alone", "single_call"]


def single_call(
    operator: Operator, arguments: Mapping[str, Any], constants: Collection[str] = ()
) -> tuple[Graph, list[Array]]:
    """The graph that calls ``operator`` once, and the arrays to feed it.

    Args:
        operator: the declaration.
        arguments: arrays and attributes by name.
        constants: names of arrays that become constants of the graph rather than inputs.
    """
    inputs: list[Value] = []
    fed: list[Array] = []
    named: dict[str, Any] = {}
    for name, given in arguments.items():
        if not isinstance(given, (np.ndarray, np.generic)):
            named[name] = given
            continue
        item = np.asarray(given)
        dtype = dtype_of(item)
        if dtype is None:
            raise ContractError(f"{operator.name}: '{name}' has no supported type: {item.dtype}")
        value = Value(name, dtype, item.shape, item if name in constants else None)
        named[name] = value
        if name not in constants:
            inputs.append(value)
            fed.append(item)
    numbers = count()
    call = make_call(operator, named, lambda: f"{next(numbers)}", "single call")
    return _graph(call, inputs), fed


def call_alone(call: Call) -> Graph:
    """The graph of one call of another graph; what it reads, constants aside, are its inputs."""
    read = (value for value in call.inputs.values() if value.constant is None)
    return _graph(call, tuple(dict.fromkeys(read)))


def _graph(call: Call, inputs: Sequence[Value]) -> Graph:
    named = zip(call.operator.outputs, call.outputs, strict=True)
    return Graph(
        name=call.operator.name,
        inputs=tuple(inputs),
        outputs=call.outputs,
        calls=(call,),
        input_specs=tuple(TensorSpec(v.name, v.dtype.name, v.shape) for v in inputs),
        output_specs=tuple(TensorSpec(o.name, v.dtype.name, v.shape) for o, v in named),
    )
