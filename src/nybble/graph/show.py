"""Prints a graph the way compilers print IR: one line a call, types and named arguments."""

from __future__ import annotations

from typing import Any

from .ir import Call, Graph, Value

__all__ = ["format_graph"]


def format_graph(graph: Graph) -> str:
    """The text of a graph; constants appear as ``const``, values as ``%name``."""
    inputs = ", ".join(f"%{value.name}: {value}" for value in graph.inputs)
    lines = [f"method {graph.name}({inputs}) {{"]
    lines += [f"  state %{s.value.name}: {s.value}  // {s.name}" for s in graph.states]
    lines += [f"  {_call(call)}" for call in graph.calls]
    lines += [
        f"  state %{s.value.name} <- {_operand(s.final)}"
        for s in graph.states
        if s.final is not s.value
    ]
    outputs = ", ".join(_operand(value) for value in graph.outputs)
    return "\n".join([*lines, f"  return {outputs}", "}"])


def _call(call: Call) -> str:
    results = ", ".join(f"%{value.name}: {value}" for value in call.outputs)
    shown = []
    for argument in call.operator.arguments:
        value = call.arguments[argument.name]
        if argument.ignored or (argument.internal and value == argument.default):
            continue
        shown.append(f"{argument.name}={_operand(value)}")
    return f"{results} = {call.operator.name}({', '.join(shown)})"


def _operand(value: Any) -> str:
    if isinstance(value, Value):
        return f"%{value.name}" if value.constant is None else f"const {value}"
    if isinstance(value, float):
        return f"{value:.9g}"
    if isinstance(value, tuple):
        return "[" + ", ".join(_operand(item) for item in value) + "]"
    return repr(value)
