"""One function under compilation: its instructions, and the names in scope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .assembler import Assembler, Number, instruction
from .opcodes import Math, Op, Storage
from .tokens import Cursor, ShaderError
from .types import (
    ABSTRACT_FLOAT,
    ABSTRACT_INT,
    BOOL,
    F32,
    I32,
    U32,
    Type,
    scalar_of,
)

if TYPE_CHECKING:
    from .module import Module

__all__ = ["Context", "Loop", "Operand", "Reference", "Value"]

_RANGES = {I32: (-(2**31), 2**31 - 1), U32: (0, 2**32 - 1)}
_LARGEST_F32 = 3.4028235677973366e38  # half a step beyond float32's largest number


@dataclass(frozen=True)
class Value:
    """The result of an expression.

    ``number`` is its content where that is known: of a scalar, or of every component of a vector.
    Such a value becomes an instruction (``id``) only where it is needed.
    """

    type: Type
    id: int = 0
    number: Number | None = None


@dataclass(frozen=True)
class Reference:
    """A place in memory: a variable and the indices that lead into it."""

    type: Type
    storage: Storage
    root: int
    indices: tuple[int, ...] = ()
    writable: bool = True


Operand = Value | Reference


@dataclass(frozen=True)
class Loop:
    """Where ``break`` and ``continue`` lead."""

    merge: int
    next: int


class Context:
    """Emits the instructions of one function, at the position of the module's cursor."""

    def __init__(self, module: Module, result: Type) -> None:
        self.module = module
        self.assembler: Assembler = module.assembler
        self.cursor: Cursor = module.cursor
        self.result = result
        self.scopes: list[dict[str, Operand]] = [{}]
        self.loops: list[Loop] = []
        self.variables: list[int] = []
        self.body: list[int] = []
        self.block = self.assembler.new_id()
        self.live = True
        self.costly = 0
        """Counts what ``&&`` and ``||`` must not evaluate in vain: calls, and reads by index."""

    def error(self, problem: str) -> ShaderError:
        """An error at the cursor."""
        return self.cursor.error(problem)

    def emit(self, op: Op, type_: Type, *operands: int) -> Value:
        """An instruction with a result."""
        result = self.assembler.new_id()
        self.body += instruction(op, self.assembler.type(type_), result, *operands)
        return Value(type_, result)

    def do(self, op: Op, *operands: int) -> None:
        """An instruction without a result."""
        self.body += instruction(op, *operands)

    def math(self, function: Math, type_: Type, *operands: int) -> Value:
        """A function of the set GLSL.std.450."""
        result = self.assembler.new_id()
        self.body += self.assembler.math(self.assembler.type(type_), result, function, *operands)
        return Value(type_, result)

    def id(self, value: Value) -> int:
        """The id of a value; a literal without a type takes its default one."""
        if value.id:
            return value.id
        value = self.concrete(value)
        assert value.number is not None
        return self.assembler.number(value.type, value.number)

    def u32(self, number: int) -> int:
        """The id of a ``u32`` constant."""
        return self.assembler.number(U32, number)

    def null(self, type_: Type) -> Value:
        """The zero value of a type."""
        if scalar_of(type_).kind == "scalar" and type_.kind in ("scalar", "vector"):
            return Value(type_, 0, False if scalar_of(type_) is BOOL else 0)
        return Value(type_, self.assembler.null(type_))

    def concrete(self, value: Value) -> Value:
        """A literal with the type it takes where none is asked for; other values unchanged."""
        if value.type is ABSTRACT_INT:
            return self.convert(value, I32)
        if value.type is ABSTRACT_FLOAT:
            return self.convert(value, F32)
        return value

    def convert(self, value: Value, wanted: Type) -> Value:
        """``value`` as ``wanted``, which only a literal may change to.

        Raises:
            ShaderError: it has another type, or the literal does not fit.
        """
        if value.type is wanted:
            return value
        fits = value.type is ABSTRACT_INT and wanted in (I32, U32, F32)
        if not fits and not (value.type is ABSTRACT_FLOAT and wanted is F32):
            raise self.error(f"expected {wanted}, received {value.type}")
        assert value.number is not None
        if wanted is F32:
            if not abs(value.number) < _LARGEST_F32:
                raise self.error(f"{value.number} does not fit f32")
            return Value(F32, 0, float(value.number))
        low, high = _RANGES[wanted]
        if not low <= value.number <= high:
            raise self.error(f"{value.number} does not fit {wanted}")
        return Value(wanted, 0, value.number)

    def pointer(self, place: Reference) -> int:
        """The id of a pointer to a place."""
        if not place.indices:
            return place.root
        pointer = self.assembler.pointer(place.storage, self.assembler.type(place.type))
        result = self.assembler.new_id()
        self.body += instruction(Op.ACCESS_CHAIN, pointer, result, place.root, *place.indices)
        return result

    def load(self, operand: Operand) -> Value:
        """The value of an operand."""
        if isinstance(operand, Value):
            return operand
        if operand.type.count == 0:
            raise self.error(f"a whole {operand.type} cannot be read: index it")
        return self.emit(Op.LOAD, operand.type, self.pointer(operand), *self._access(operand))

    def store(self, place: Reference, value: Value) -> None:
        """Write a value, which has the place's type."""
        if not place.writable:
            raise self.error("this place is read only")
        self.do(Op.STORE, self.pointer(place), self.id(value), *self._access(place))

    def _access(self, place: Reference) -> tuple[int, ...]:
        """Under Vulkan's memory model, shared memory is marked as such."""
        shared = place.storage in (Storage.WORKGROUP, Storage.STORAGE_BUFFER)
        return (0x20,) if shared and self.module.uses_matrix_units else ()

    def local(self, type_: Type) -> Reference:
        """A new variable of this function."""
        result = self.assembler.new_id()
        pointer = self.assembler.pointer(Storage.FUNCTION, self.assembler.type(type_))
        self.variables += instruction(Op.VARIABLE, pointer, result, Storage.FUNCTION)
        return Reference(type_, Storage.FUNCTION, result)

    def look_up(self, name: str) -> Operand | None:
        """What a name means here: innermost scope first, then the module's."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return self.module.names.get(name)

    def declare(self, name: str, operand: Operand) -> None:
        """Give a name its meaning in the innermost scope.

        Raises:
            ShaderError: the scope has it already.
        """
        if name in self.scopes[-1]:
            raise self.error(f"'{name}' is declared twice in one scope")
        self.scopes[-1][name] = operand

    def label(self, label: int) -> None:
        """Begin a block."""
        self.body += instruction(Op.LABEL, label)
        self.block = label
        self.live = True

    def branch(self, target: int) -> None:
        """End the block, unless something ended it already."""
        if self.live:
            self.do(Op.BRANCH, target)
            self.live = False
