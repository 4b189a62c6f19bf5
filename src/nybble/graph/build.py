"""ProgramFile -> Graph: a method's delegates and the kernel calls between them, joined.

Positional serialized arguments become named ones here. Everything that cannot be built is
collected and reported at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from nybble import formats
from nybble.contract import (
    DTYPES,
    EXPANSIONS,
    REGISTRY,
    Array,
    Expansion,
    Operator,
    bind,
    bind_serialized,
)
from nybble.errors import ContractError, ProgramFormatError, UnsupportedProgramError

from .align import align_arguments
from .delegate import DelegateBuilder
from .ir import Call, Graph, State, TensorSpec, Value, make_call
from .symbols import Specialization, Symbol

__all__ = ["build_graph"]

EXPORT_AGAIN = (
    "Export it with the stock VulkanPartitioner: "
    "nybble.export.export(module, example_inputs, path), or "
    "to_edge_transform_and_lower(..., partitioner=[VulkanPartitioner()])"
)
_NARROWED = {"int64": "int32", "float64": "float32"}
"""Element types of a caller that graphs hold in fewer bits, as the exporter narrows them."""


def build_graph(method: formats.MethodFile, specialization: Specialization | None = None) -> Graph:
    """The graph of a method.

    Args:
        method: what the file says.
        specialization: the inputs' shapes and integers to build for; the bounds by default.

    Raises:
        UnsupportedProgramError: something in it is not supported; ``calls`` lists all of it.
        ProgramFormatError: the method contradicts itself.
    """
    builder = MethodBuilder(method, specialization or Specialization())
    builder.check_backends()
    for instruction in method.instructions:
        builder.add(instruction)
    return builder.finish()


class MethodBuilder:
    """Collects the calls of a method, and what stands in their way."""

    def __init__(self, method: formats.MethodFile, specialization: Specialization) -> None:
        self.method = method
        self.specialization = specialization
        self.symbols: dict[Symbol, int] = {}
        self.problems: list[str] = []
        self.calls: list[Call] = []
        self.values: dict[int, Any] = {}
        self.numbers = count()
        self.kernel_calls = 0
        self.states: dict[Value, tuple[str, Array]] = {}
        self.finals: dict[Value, Value] = {}
        self.inputs: list[Value] = []
        self.input_specs: list[TensorSpec] = []
        for number, index in enumerate(method.inputs):
            self.add_input(number, index)

    def check_backends(self) -> None:
        name = self.method.name
        others = sorted({d.backend for d in self.method.delegates if d.graph is None})
        if others:
            raise UnsupportedProgramError(
                f"method '{name}' is delegated to {', '.join(others)}; nybble runs programs "
                f"delegated to VulkanBackend. {EXPORT_AGAIN}",
                [f"{name}: delegate to {backend}" for backend in others],
            )
        if not self.method.delegates:
            kernels = sorted(
                {i.op for i in self.method.instructions if isinstance(i, formats.KernelCall)}
            )
            raise UnsupportedProgramError(
                f"method '{name}' is not delegated to any backend; nybble runs programs delegated "
                f"to VulkanBackend. {EXPORT_AGAIN}",
                [f"{name}: portable kernel {kernel}" for kernel in kernels],
            )

    def add_input(self, number: int, index: int) -> None:
        item = self.method.values[index]
        name = f"input_{number}"
        if not isinstance(item, formats.FileTensor):
            kind = "nothing" if item is None else type(item).__name__
            self.problems.append(f"{name} is {kind}, not a tensor")
            return
        if item.dynamism == "unbounded":
            self.problems.append(
                f"{name} has a shape without bounds; export with bounded dynamic shapes"
            )
        shapes = self.specialization.shapes
        shape = item.shape if shapes is None else shapes[number]
        value = Value(name, DTYPES[self.element_type(item.dtype, name)], shape)
        self.values[index] = value
        self.inputs.append(value)
        dynamic = item.dynamism != "static"
        self.input_specs.append(TensorSpec(name, item.dtype, item.shape, dynamic))

    def symbol(self, value: Value, element: int) -> int | None:
        """The integer in an element of an input; None if ``value`` is no integer input."""
        if value not in self.inputs or value.dtype.name not in ("int32", "uint8", "int8"):
            return None
        symbol = Symbol(self.inputs.index(value), element)
        return self.symbols.setdefault(symbol, self.specialization.values.get(symbol, 0))

    @property
    def is_dynamic(self) -> bool:
        """Whether declared result shapes are bounds, and derived ones count."""
        return bool(self.symbols) or any(spec.dynamic for spec in self.input_specs)

    def element_type(self, dtype: str, where: str) -> str:
        narrowed = _NARROWED.get(dtype, dtype)
        if narrowed not in DTYPES:
            self.problems.append(f"{where} has element type {dtype}, which nybble does not know")
            return "float32"
        return narrowed

    def add(self, instruction: formats.Instruction) -> None:
        if isinstance(instruction, formats.DelegateCall):
            self.add_delegate(instruction)
        elif isinstance(instruction, formats.KernelCall):
            self.add_kernel_call(instruction)
        elif isinstance(instruction, formats.MoveCall):
            self.values[instruction.target] = self.method_value(instruction.source)
        elif isinstance(instruction, formats.JumpFalseCall):
            self.problems.append("control flow (a conditional jump) between delegates")

    def method_value(self, index: int) -> Any:
        """The graph value or the scalar of a method's value."""
        if index in self.values:
            return self.values[index]
        item = self.method.values[index]
        if isinstance(item, formats.FileTensor):
            if item.data is None:
                raise ProgramFormatError(
                    f"method '{self.method.name}': value {index} is read before it is written"
                )
            if item.kind == "mutable":
                self.problems.append(f"value {index} is mutable state, which is not supported yet")
            return self.remember(index, self.method_constant(index, item))
        if isinstance(item, formats.IndexList):
            return tuple(self.method_value(i) for i in item.items)
        if isinstance(item, formats.FileTensorList):
            return tuple(None if i is None else self.method_value(i) for i in item.items)
        return item

    def remember(self, index: int, value: Value) -> Value:
        self.values[index] = value
        return value

    def method_constant(self, index: int, item: formats.FileTensor) -> Value:
        name = item.name or f"constant_{index}"
        dtype = self.element_type(item.dtype, name)
        if item.dtype not in DTYPES:
            return Value(name, DTYPES[dtype], item.shape)
        stored = np.frombuffer(item.data or b"", np.dtype(item.dtype))
        outer_first = stored.reshape([item.shape[d] for d in item.dim_order])
        data = outer_first.transpose(np.argsort(item.dim_order)) if item.shape else outer_first
        return Value(name, DTYPES[dtype], item.shape, data.astype(dtype, copy=False))

    def add_kernel_call(self, instruction: formats.KernelCall) -> None:
        self.kernel_calls += 1
        where = f"kernel call {self.kernel_calls}"
        if instruction.op in EXPANSIONS:
            self.expand_kernel_call(EXPANSIONS[instruction.op], instruction, where)
            return
        operator = REGISTRY.get(instruction.op)
        if operator is None:
            self.problems.append(f"{where}: {instruction.op} is not an operator of nybble")
            self.poison(instruction.args)
            return
        inputs = instruction.args[: len(operator.serialized)]
        if operator.mutates:
            self.problems.append(f"{where}: {instruction.op} writes over its arguments")
            return
        results = instruction.args[len(inputs) : len(inputs) + len(operator.outputs)]
        declared = [self.method.values[i] for i in results]
        if len(results) < len(operator.outputs) or not all(
            isinstance(d, formats.FileTensor) for d in declared
        ):
            raise ProgramFormatError(f"{where}: {instruction.op} lacks its results")
        call = self.emit(operator, [self.method_value(i) for i in inputs], declared, where)
        values = call.outputs if isinstance(call, Call) else call
        self.values.update(zip(results, values, strict=True))

    def expand_kernel_call(
        self, expansion: Expansion, instruction: formats.KernelCall, where: str
    ) -> None:
        count = len(expansion.arguments)
        inputs, rest = instruction.args[:count], instruction.args[count:]
        stored = self.method.values[rest[0]] if rest else None
        results = stored.items if isinstance(stored, formats.FileTensorList) else rest[:1]
        declared = [None if i is None else self.method.values[i] for i in results]
        if not declared or not all(isinstance(d, formats.FileTensor) for d in declared):
            raise ProgramFormatError(f"{where}: {instruction.op} lacks its results")
        values = self.expand(expansion, [self.method_value(i) for i in inputs], declared, where)
        self.values.update((i, v) for i, v in zip(results, values, strict=True) if i is not None)

    def poison(self, indices: Sequence[int]) -> None:
        """Stand-ins for the results of an unknown call, so that later problems are found too."""
        for index in indices:
            item = self.method.values[index]
            if isinstance(item, formats.FileTensor) and item.data is None:
                self.values.setdefault(index, self.placeholder(item.dtype, item.shape))

    def placeholder(self, dtype: str, shape: tuple[int, ...]) -> Value:
        known = _NARROWED.get(dtype, dtype)
        return Value(self.fresh(), DTYPES.get(known, DTYPES["float32"]), shape)

    def fresh(self) -> str:
        return str(next(self.numbers))

    def emit(
        self, operator: Operator, arguments: Sequence[Any], declared: Sequence[Any], where: str
    ) -> Call | list[Value]:
        """Append a call; stand-ins for its stored results if it breaks its contract."""
        stored = [
            Value("", DTYPES[self.element_type(d.dtype, f"{where}, its result")], d.shape)
            for d in declared
        ]
        try:
            named = bind_serialized(operator, arguments)
            types = _result_types(operator, named, stored)
            if any(a.name == "out_dtype" and a.internal for a in operator.arguments):
                named["out_dtype"] = types[0].dtype.name
            bound = bind(operator, named, None if self.is_dynamic else types)
        except ContractError as error:
            self.problems.append(f"{where}: {error}")
            return [Value(self.fresh(), t.dtype, t.shape) for t in stored]
        outputs = tuple(Value(self.fresh(), t.dtype, t.shape) for t in bound.outputs)
        self.calls.append(Call(bound, outputs, where))
        return self.calls[-1]

    def expand(
        self, expansion: Expansion, arguments: Sequence[Any], declared: Sequence[Any], where: str
    ) -> list[Value]:
        """Append the calls of an expansion; stand-ins for its results if it cannot be expanded."""
        before = len(self.calls)
        stored = [
            Value(self.fresh(), DTYPES[self.element_type(d.dtype, f"{where}, its result")], d.shape)
            for d in declared
        ]

        def emit(operator: str, **named: Any) -> Any:
            self.calls.append(make_call(REGISTRY[operator], named, self.fresh, where))
            results = self.calls[-1].outputs
            return results[0] if len(results) == 1 else results

        try:
            values = list(expansion(emit, arguments))
            if [(v.dtype, v.shape) for v in values] != [(v.dtype, v.shape) for v in stored]:
                raise ContractError(
                    f"{expansion.name}: its results differ from the program's\n  expected  "
                    f"{', '.join(map(str, values))}\n  received  {', '.join(map(str, stored))}"
                )
        except ContractError as error:
            del self.calls[before:]
            self.problems.append(f"{where}: {error}")
            return stored
        return values

    def add_delegate(self, instruction: formats.DelegateCall) -> None:
        graph = self.method.delegates[instruction.delegate].graph
        assert graph is not None
        where = f"delegate {instruction.delegate}"
        pairs = align_arguments(self.method, instruction, graph, where)
        if isinstance(pairs, str):
            self.problems.append(pairs)
            self.poison(instruction.args)
            return
        inputs, outputs, extra = pairs
        joined = DelegateBuilder(self, graph, instruction.delegate)
        for inside, outside in inputs:
            joined.take_input(inside, self.method_value(outside))
        for node in graph.calls:
            joined.add(node)
        joined.take_extra_outputs(extra)
        for inside, outside in outputs:
            self.values[outside] = joined.value(inside)

    def add_state(self, name: str, dtype: str, initial: Array) -> Value:
        """A new state, unchanged until ``finals`` has another value for it."""
        value = Value(name, DTYPES[dtype], initial.shape)
        self.states[value] = (name, initial)
        self.finals[value] = value
        return value

    def finish(self) -> Graph:
        outputs: list[Value] = []
        specs: list[TensorSpec] = []
        for number, index in enumerate(self.method.outputs):
            item = self.method.values[index]
            if not isinstance(item, formats.FileTensor):
                self.problems.append(f"output_{number} is not a tensor")
                continue
            if self.problems and index not in self.values and item.data is None:
                continue
            outputs.append(self.method_value(index))
            shape = outputs[-1].shape if self.is_dynamic else item.shape
            dynamic = item.dynamism != "static"
            specs.append(TensorSpec(f"output_{number}", item.dtype, shape, dynamic))
        self.raise_problems()
        return Graph(
            self.method.name,
            tuple(self.inputs),
            tuple(outputs),
            tuple(self.calls),
            tuple(self.input_specs),
            tuple(specs),
            tuple(
                State(name, value, self.finals[value], initial)
                for value, (name, initial) in self.states.items()
            ),
            self.symbols,
        )

    def raise_problems(self) -> None:
        if not self.problems:
            return
        unique = tuple(dict.fromkeys(self.problems))
        listed = "\n".join(f"  - {problem}" for problem in unique)
        raise UnsupportedProgramError(
            f"method '{self.method.name}' cannot be run, for {len(unique)} reason(s):\n{listed}",
            unique,
        )


def _result_types(
    operator: Operator, named: Mapping[str, Any], stored: Sequence[Value]
) -> list[Value]:
    """What a call's results must be: as stored, and new contents as the argument they replace."""
    rest = iter(stored)
    types = []
    for output in operator.outputs:
        argument = operator.mutates.get(output.name)
        found = next(rest, None) if argument is None else named.get(argument)
        if not isinstance(found, Value):
            raise ContractError(f"{operator.name}: the program lacks its result '{output.name}'")
        types.append(found)
    return types
