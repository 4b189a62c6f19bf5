"""One method of a program: its values, instructions and delegates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from nybble.errors import ProgramFormatError
from nybble.formats.flatbuffer import Table
from nybble.formats.program_file import (
    DelegateCall,
    DelegateFile,
    DelegateGraph,
    FileTensor,
    FileTensorList,
    FileValue,
    FreeCall,
    IndexList,
    Instruction,
    JumpFalseCall,
    KernelCall,
    MethodFile,
    MoveCall,
)
from nybble.formats.storage import quoted
from nybble.formats.tensors import StoredData, read_tensor
from nybble.formats.values import PLAIN_VALUES, check_ids, numbered

__all__ = ["read_method"]

_VULKAN = "VulkanBackend"


def read_method(
    plan: Table,
    stored: StoredData,
    delegate_graph: Callable[[Table, str, bool], DelegateGraph | None],
) -> MethodFile:
    """The method of an ExecutionPlan table; raises :class:`ProgramFormatError`.

    ``delegate_graph(reference, where, wanted)`` finds a delegate's blob and, if ``wanted``, reads
    it.
    """
    name = plan.text("name")
    where = f"{plan.buffer.source}, method {quoted(name)}"
    values = tuple(
        _value(row.union("value", place), stored, place)
        for place, row in numbered(plan.many("values"), f"{where}, value")
    )
    _check_lists(values, where)
    inputs, outputs = plan.integers("inputs"), plan.integers("outputs")
    check_ids(inputs, len(values), f"{where}, inputs", "values")
    check_ids(outputs, len(values), f"{where}, outputs", "values")
    delegates = tuple(
        _delegate(row, delegate_graph, place)
        for place, row in numbered(plan.many("delegates"), f"{where}, delegate")
    )
    instructions = _instructions(plan, (len(values), len(delegates)), where)
    return MethodFile(name, values, inputs, outputs, instructions, delegates)


@dataclass(frozen=True, slots=True)
class _Scope:
    """What the instructions of a chain may refer to."""

    operators: Sequence[str]
    value_count: int
    delegate_count: int
    chain_start: int
    chain_length: int

    def value(self, row: Table, field: str, where: str) -> int:
        """The id in this field."""
        return self._checked(row.integer(field), self.value_count, where, "values")

    def args(self, row: Table, where: str) -> tuple[int, ...]:
        """The ids that a call passes."""
        args = row.integers("args")
        check_ids(args, self.value_count, f"{where}, arguments", "values")
        return args

    def operator(self, row: Table, where: str) -> str:
        """The operator that a kernel call names."""
        count = len(self.operators)
        return self.operators[self._checked(row.integer("op_index"), count, where, "operators")]

    def delegate(self, row: Table, where: str) -> int:
        """The delegate that a delegate call names."""
        count = self.delegate_count
        return self._checked(row.integer("delegate_index"), count, where, "delegates")

    def target(self, row: Table, where: str) -> int:
        """Where a jump leads; one past the last instruction is the end."""
        target, count = row.integer("destination_instruction"), self.chain_length + 1
        return self.chain_start + self._checked(target, count, where, "places to jump to")

    @staticmethod
    def _checked(identifier: int, count: int, where: str, what: str) -> int:
        check_ids([identifier], count, where, what)
        return identifier


def _instructions(plan: Table, counts: tuple[int, int], where: str) -> tuple[Instruction, ...]:
    chains = plan.many("chains")
    if not chains:
        raise ProgramFormatError(f"{where}: there is no chain of instructions, expected one.")
    operators = [_operator_name(row) for row in plan.many("operators")]
    instructions: list[Instruction] = []
    for chain in chains:
        # Chains run one after the other: jumps of a later one shift by what precedes it.
        rows = chain.many("instructions")
        scope = _Scope(operators, *counts, len(instructions), len(rows))
        for row in rows:
            place = f"{where}, instruction {len(instructions)}"
            instructions.append(_instruction(row.union("arguments", place), scope, place))
    return tuple(instructions)


def _kernel_call(row: Table, scope: _Scope, where: str) -> Instruction:
    return KernelCall(scope.operator(row, where), scope.args(row, where))


def _delegate_call(row: Table, scope: _Scope, where: str) -> Instruction:
    return DelegateCall(scope.delegate(row, where), scope.args(row, where))


def _move_call(row: Table, scope: _Scope, where: str) -> Instruction:
    return MoveCall(scope.value(row, "move_from", where), scope.value(row, "move_to", where))


def _jump_call(row: Table, scope: _Scope, where: str) -> Instruction:
    condition = scope.value(row, "cond_value_index", where)
    return JumpFalseCall(condition, scope.target(row, where))


def _free_call(row: Table, scope: _Scope, where: str) -> Instruction:
    return FreeCall(scope.value(row, "value_index", where))


_INSTRUCTIONS: Mapping[str, Callable[[Table, _Scope, str], Instruction]] = MappingProxyType(
    {
        "KernelCall": _kernel_call,
        "DelegateCall": _delegate_call,
        "MoveCall": _move_call,
        "JumpFalseCall": _jump_call,
        "FreeCall": _free_call,
    }
)


def _instruction(row: Table, scope: _Scope, where: str) -> Instruction:
    return _INSTRUCTIONS[row.schema.name](row, scope, where)


def _value(row: Table, stored: StoredData, where: str) -> FileValue:
    kind = row.schema.name
    if kind == "Tensor":
        return read_tensor(row, stored, where)
    return _LISTS[kind](row) if kind in _LISTS else PLAIN_VALUES[kind](row)


def _optional_tensors(row: Table) -> FileTensorList:
    return FileTensorList(tuple(None if item == -1 else item for item in row.integers("items")))


# Integers of a list are ids of values here, unlike in delegates.
_LISTS: Mapping[str, Callable[[Table], FileValue]] = MappingProxyType(
    {
        "IntList": lambda row: IndexList(row.integers("items")),
        "TensorList": lambda row: FileTensorList(row.integers("items")),
        "OptionalTensorList": _optional_tensors,
    }
)


def _check_lists(values: Sequence[FileValue], where: str) -> None:
    """Lists refer to values of the right kind; in particular not to lists (cycles)."""
    for index, value in enumerate(values):
        if not isinstance(value, IndexList | FileTensorList):
            continue
        place = f"{where}, value {index}"
        items = [item for item in value.items if item is not None]
        check_ids(items, len(values), place, "values")
        of_integers = isinstance(value, IndexList)
        for item in items:
            target = values[item]
            fits = isinstance(target, int) if of_integers else isinstance(target, FileTensor | None)
            if not fits:
                raise ProgramFormatError(
                    f"{place}: item {item} is of kind {type(target).__name__}, expected "
                    f"{'an integer' if of_integers else 'a tensor'}."
                )


def _operator_name(row: Table) -> str:
    """``aten::mean`` with overload ``out`` is ``aten.mean.out``; no overload is ``default``."""
    return f"{row.text('name').replace('::', '.')}.{row.text('overload') or 'default'}"


def _delegate(
    row: Table, delegate_graph: Callable[[Table, str, bool], DelegateGraph | None], where: str
) -> DelegateFile:
    backend = row.text("id")
    if not backend:
        raise ProgramFormatError(f"{where}: the delegate names no backend.")
    options: dict[str, bytes] = {}
    for spec in row.many("compile_specs"):
        content = spec.bytes("value")
        row.buffer.charge(len(content), f"{where}, options")
        options[spec.text("key")] = bytes(content)
    reference = row.one("processed")
    if reference is None:
        raise ProgramFormatError(f"{where} ({quoted(backend)}): it refers to no data.")
    graph = delegate_graph(reference, f"{where} ({quoted(backend)})", backend == _VULKAN)
    return DelegateFile(backend, MappingProxyType(options), graph)
