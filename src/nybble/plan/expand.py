"""Puts several calls in place of one where the device runs those better: composites.

The last of them makes the very values that the call made; what several calls of a graph prepare
alike is made once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from nybble.contract import REGISTRY, AnyKernel, Composite
from nybble.graph import Call, Graph, Value, make_call

__all__ = ["expand_composites", "parts_of"]

Pick = Callable[[Call], AnyKernel | None]


def expand_composites(graph: Graph, pick: Pick) -> Graph:
    """The graph with the calls for which ``pick`` gives a composite expanded."""
    picked = {call: pick(call) for call in graph.calls}
    if not any(isinstance(kernel, Composite) for kernel in picked.values()):
        return graph
    expander = _Expander()
    for call, kernel in picked.items():
        if isinstance(kernel, Composite):
            expander.expand(call, kernel)
        else:
            expander.calls.append(call)
    return graph.with_calls(expander.calls)


def parts_of(call: Call, composite: Composite) -> list[Call]:
    """The calls of a composite in place of one call."""
    expander = _Expander()
    expander.expand(call, composite)
    return expander.calls


@dataclass(eq=False)
class _Expander:
    calls: list[Call] = field(default_factory=list)
    made: dict[tuple[Any, ...], Call] = field(default_factory=dict)
    numbers: count[int] = field(default_factory=count)

    def expand(self, call: Call, composite: Composite) -> None:
        def emit(operator: str, **arguments: Any) -> Any:
            outputs = self._emit(call, operator, arguments).outputs
            return outputs[0] if len(outputs) == 1 else outputs

        before = len(self.calls)
        result = composite.expand(emit, **call.arguments)
        results = result if isinstance(result, tuple) else (result,)
        if len(self.calls) == before:
            # Another call has all of its parts: the last is made again, for results of its own.
            again = (made for made in self.made.values() if made.outputs == results)
            self.calls += [replace(made, source=call) for made in again]
        if len(self.calls) == before or self.calls[-1].outputs != results:
            raise ValueError(f"{composite.name}: its last call must make the result")
        last = self.calls[-1]
        have = [(v.dtype, v.shape) for v in last.outputs]
        wanted = [(v.dtype, v.shape) for v in call.outputs]
        if have != wanted:
            raise ValueError(f"{composite.name} makes {have} where {wanted} is to be made")
        # It may not serve another call, which must get results of its own.
        self.made = {key: made for key, made in self.made.items() if made is not last}
        self.calls[-1] = replace(last, outputs=call.outputs)

    def _emit(self, call: Call, operator: str, arguments: Mapping[str, Any]) -> Call:
        if any(isinstance(kernel, Composite) for kernel in REGISTRY[operator].kernels):
            raise ValueError(
                f"{call.operator.name}: its part {operator} has a composite itself; emit its parts"
            )
        key = (operator, *((name, _identity(value)) for name, value in arguments.items()))
        if key not in self.made:
            stem = call.outputs[0].name
            part = make_call(
                REGISTRY[operator],
                arguments,
                lambda: f"{stem}_part_{next(self.numbers)}",
                call.origin,
            )
            self.made[key] = replace(part, source=call)
            self.calls.append(self.made[key])
        return self.made[key]


def _identity(value: Any) -> Any:
    return id(value) if isinstance(value, Value) else repr(value)
