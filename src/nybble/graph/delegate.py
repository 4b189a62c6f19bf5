"""Adds the calls of one delegate to a method's graph, states included."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from nybble import formats
from nybble.contract import DTYPES, EXPANSIONS, REGISTRY, Array, Operator
from nybble.errors import ProgramFormatError

from .ir import Call, Value
from .symbols import SYMBOLIC

if TYPE_CHECKING:
    from .build import MethodBuilder

__all__ = ["DelegateBuilder"]

PREPACK = "et_vk.prepack.default"


class DelegateBuilder:
    """Turns nodes into calls; buffers that nodes overwrite become states."""

    def __init__(self, outer: MethodBuilder, graph: formats.DelegateGraph, number: int) -> None:
        self.outer = outer
        self.graph = graph
        self.number = number
        self.where = f"delegate {number}"
        self.values: dict[int, Any] = {}
        self.states: dict[int, Value] = {}
        self.overwritten = self._overwritten()

    def _overwritten(self) -> set[int]:
        """Ids that a node writes after something else defined them, or that it mutates."""
        defined: set[int] = {
            index
            for index, item in enumerate(self.graph.values)
            if isinstance(item, formats.DelegateTensor) and item.data is not None
        }
        found: set[int] = set()
        for node in self.graph.calls:
            if not node.args:
                raise ProgramFormatError(f"{self.where}, node {node.node_id}: it has no result")
            results = set(self.results(node.args[-1]))
            found |= results & defined
            defined |= results
            operator = REGISTRY.get(node.name)
            if operator is not None and operator.mutates:
                names = [a.name for a in operator.serialized]
                places = map(names.index, operator.mutates.values())
                found |= {node.args[place] for place in places if place < len(node.args)}
        return found

    def value(self, index: int) -> Any:
        """The graph value or the scalar of a delegate's value."""
        if index in self.values:
            return self.values[index]
        item = self.graph.values[index]
        if isinstance(item, formats.DelegateTensor):
            if item.data is None:
                raise ProgramFormatError(
                    f"{self.where}: value {index} is read before it is written"
                )
            constant = self.constant(index, item)
            self.values[index] = (
                self.state(index, constant) if index in self.overwritten else constant
            )
            return self.values[index]
        if isinstance(item, formats.ValueList):
            return tuple(self.value(i) for i in item.items)
        if isinstance(item, formats.SymbolicInt):
            raise ProgramFormatError(
                f"{self.where}: symbolic integer {index} is read before it is computed"
            )
        return item

    def constant(self, index: int, item: formats.DelegateTensor) -> Value:
        """A constant of the delegate."""
        name = f"constant_{self.number}_{index}"
        dtype = self.outer.element_type(item.dtype, f"{self.where}, constant {index}")
        if item.dtype not in DTYPES:
            return Value(name, DTYPES[dtype], item.shape)
        data: Array = np.frombuffer(item.data or b"", np.dtype(item.dtype)).reshape(item.shape)
        return Value(name, DTYPES[dtype], item.shape, data.astype(dtype, copy=False))

    def state(self, index: int, constant: Value) -> Value:
        """The state that begins as ``constant``; the buffer of delegate value ``index``."""
        assert constant.constant is not None
        name = f"{self.outer.method.name}.state_{self.number}_{index}"
        value = self.outer.add_state(name, constant.dtype.name, constant.constant)
        self.states[index] = value
        return value

    def add(self, node: formats.DelegateNode) -> None:
        """Append the call of a node."""
        where = f"{self.where}, node {node.node_id}"
        if self.is_symbolic(node):
            self.add_symbolic(node, where)
            return
        operator = REGISTRY.get(node.name)
        *inputs, last = node.args
        results = self.results(last)
        declared = [self.graph.values[i] for i in results]
        if not all(isinstance(d, formats.DelegateTensor) for d in declared):
            self.outer.problems.append(f"{where}: {node.name} has a result that is no tensor")
            return
        if node.name in EXPANSIONS:
            arguments = [self.value(i) for i in inputs]
            values = self.outer.expand(EXPANSIONS[node.name], arguments, declared, where)
            self.values.update(zip(results, values, strict=True))
            return
        if operator is None:
            self.outer.problems.append(f"{where}: {node.name} is not an operator of nybble")
            for index in results:
                item = self.graph.values[index]
                assert isinstance(item, formats.DelegateTensor)
                self.values[index] = self.outer.placeholder(item.dtype, item.shape)
            return
        if operator.name == PREPACK and self.overwritten.intersection(results[:1]):
            self.values[results[0]] = self.state(results[0], self.prepacked(inputs, where))
            return
        call = self.outer.emit(operator, [self.value(i) for i in inputs], declared, where)
        if isinstance(call, Call):
            self.take_results(call, operator, inputs, results)
        else:
            self.values.update(zip(results, call, strict=False))

    def is_symbolic(self, node: formats.DelegateNode) -> bool:
        """Whether a node computes an integer on the host; a folded one is no node any more."""
        result = self.graph.values[node.args[-1]]
        return isinstance(result, (formats.SymbolicInt, int))

    def add_symbolic(self, node: formats.DelegateNode, where: str) -> None:
        """Compute the integer of a node."""
        *inputs, last = node.args
        if not isinstance(self.graph.values[last], formats.SymbolicInt):
            return
        arguments = [self.value(i) for i in inputs]
        number = self.symbolic_value(node.name, arguments)
        if number is None:
            self.outer.problems.append(f"{where}: {node.name} gives no integer known at a call")
            number = 0
        self.values[last] = number

    def symbolic_value(self, name: str, arguments: list[Any]) -> int | None:
        """What a node that makes an integer gives; None if it cannot be told on the host."""
        if name == "sym_size.int" and isinstance(arguments[0], Value):
            return arguments[0].shape[arguments[1]]
        if name == "et_vk.select_as_symint.default" and isinstance(arguments[0], Value):
            value, dim, index = arguments[:3]
            stride = math.prod(value.shape[dim + 1 :])
            return self.outer.symbol(value, (index % max(1, value.shape[dim])) * stride)
        if name in SYMBOLIC and all(isinstance(a, int) for a in arguments[:2]):
            return SYMBOLIC[name](arguments[0], arguments[1])
        return None

    def take_input(self, inside: int, outside: Any) -> None:
        """Record what feeds an input of the delegate; an integer may come in a tensor."""
        wants_integer = isinstance(self.graph.values[inside], formats.SymbolicInt)
        if wants_integer and isinstance(outside, Value):
            outside = self.outer.symbol(outside, 0)
        self.values[inside] = outside

    def prepacked(self, inputs: list[int], where: str) -> Value:
        """The constant that a prepack node reads."""
        read = self.value(inputs[0]) if len(inputs) == 1 else None
        if not isinstance(read, Value) or read.constant is None:
            raise ProgramFormatError(f"{where}: {PREPACK} reads no constant")
        return read

    def take_results(
        self, call: Call, operator: Operator, inputs: list[int], results: tuple[int, ...]
    ) -> None:
        """Record a call's results, the new contents of states among them."""
        names = [a.name for a in operator.serialized]
        stored = iter(results)
        for output, value in zip(operator.outputs, call.outputs, strict=True):
            argument = operator.mutates.get(output.name)
            index = next(stored) if argument is None else inputs[names.index(argument)]
            self.values[index] = value
            if index in self.states:
                self.outer.finals[self.states[index]] = value

    def take_extra_outputs(self, extra: tuple[int, ...]) -> None:
        """Outputs without an argument are new contents of buffers, which the file does not name.

        Each is matched to the one constant of its type that the call making it reads.
        """
        for index in extra:
            value = self.values.get(index)
            call = next((c for c in self.outer.calls if value in c.outputs), None)
            sources = [] if call is None else self._buffers_read(call)
            if len(sources) != 1:
                self.outer.problems.append(
                    f"{self.where}: it is ambiguous which buffer its output {index} is the new "
                    "content of; export with the compile option alias_buffer_mutations"
                )
                continue
            self._turn_into_state(sources[0], index)

    def _buffers_read(self, call: Call) -> list[Value]:
        prepacked = {
            c.outputs[0]: c.inputs["x"] for c in self.outer.calls if c.operator.name == PREPACK
        }
        return [
            value
            for value in call.inputs.values()
            if (value in prepacked or value.constant is not None)
            and (value.dtype, value.shape) == (call.outputs[0].dtype, call.outputs[0].shape)
        ]

    def _turn_into_state(self, buffer: Value, index: int) -> None:
        prepack = next((c for c in self.outer.calls if buffer in c.outputs), None)
        constant = buffer if prepack is None else prepack.inputs["x"]
        assert constant.constant is not None
        name = f"{self.outer.method.name}.state_{self.number}_{index}"
        state = self.outer.add_state(name, buffer.dtype.name, constant.constant)
        self.outer.calls = [
            c.replaced(**{n: state for n, v in c.inputs.items() if v is buffer})
            if buffer in c.inputs.values()
            else c
            for c in self.outer.calls
            if c is not prepack
        ]
        self.outer.finals[state] = self.values[index]

    def results(self, last: int) -> tuple[int, ...]:
        """The ids of a node's results, given its last argument."""
        item = self.graph.values[last]
        return item.items if isinstance(item, formats.ValueList) else (last,)
