"""Assembles a SPIR-V module: numbers ids, and states every type and constant once."""

from __future__ import annotations

import struct
from collections.abc import Hashable, Sequence

import numpy as np

from .opcodes import Capability, Decoration, Math, Op, Storage
from .types import BF16, BOOL, F16, F32, I8, I32, U8, U32, VOID, Type

__all__ = ["Assembler", "Number", "instruction"]

Number = int | float | bool

_MAGIC = 0x07230203
_VERSION = 0x00010300  # of Vulkan 1.1, which every driver of today reads
_MATRIX_VERSION = 0x00010600
_GL_COMPUTE = 5
_LOCAL_SIZE = 17
_INTEGERS = {U32: (32, 0), I32: (32, 1), U8: (8, 0), I8: (8, 1)}
_FLOATS = {F32: 32, F16: 16}
_BFLOAT16_ENCODING = 0
_SUBGROUP = 3
_EXTENSIONS = {
    Capability.BFLOAT16: "SPV_KHR_bfloat16",
    Capability.DOT_PRODUCT: "SPV_KHR_integer_dot_product",
    Capability.COOPERATIVE_MATRIX: "SPV_KHR_cooperative_matrix",
    Capability.VULKAN_MEMORY_MODEL: "SPV_KHR_vulkan_memory_model",
}


def instruction(op: int, *operands: int) -> tuple[int, ...]:
    """One instruction's words."""
    return ((len(operands) + 1) << 16 | op, *operands)


def _string(text: str) -> tuple[int, ...]:
    data = text.encode() + b"\0"
    data += b"\0" * (-len(data) % 4)
    return struct.unpack(f"<{len(data) // 4}I", data)


class Assembler:
    """A module under construction."""

    def __init__(self) -> None:
        self.capabilities: set[Capability] = {Capability.SHADER}
        self.functions: list[int] = []
        self._names: list[int] = []
        self._decorations: list[int] = []
        self._globals: list[int] = []
        self._known: dict[Hashable, int] = {}
        self._types: dict[Type, int] = {}
        self._variables: list[tuple[Storage, int]] = []
        self._last = 0
        self._math = self.new_id()

    def new_id(self) -> int:
        """An id that nothing has yet."""
        self._last += 1
        return self._last

    def name(self, target: int, text: str) -> None:
        """Name an id, for people who read the module."""
        self._names += instruction(Op.NAME, target, *_string(text))

    def decorate(self, target: int, decoration: Decoration, *operands: int) -> None:
        """Decorate an id."""
        self._decorations += instruction(Op.DECORATE, target, decoration, *operands)

    def once(self, op: int, *operands: int) -> int:
        """The result of a module-level instruction without a result type, stated once."""
        key = (op, operands)
        if key not in self._known:
            self._known[key] = self.new_id()
            self._globals += instruction(op, self._known[key], *operands)
        return self._known[key]

    def _constant(self, op: int, type_: int, *operands: int) -> int:
        key = (op, type_, operands)
        if key not in self._known:
            self._known[key] = self.new_id()
            self._globals += instruction(op, type_, self._known[key], *operands)
        return self._known[key]

    def type(self, type_: Type) -> int:
        """The id of a type, without a layout in memory."""
        known = self._types.get(type_)
        if known is None:
            known = self._types[type_] = self._new_type(type_)
        return known

    def _new_type(self, type_: Type) -> int:
        if type_ is VOID:
            return self.once(Op.TYPE_VOID)
        if type_ is BOOL:
            return self.once(Op.TYPE_BOOL)
        if type_ in _INTEGERS:
            if type_ in (I8, U8):
                self.capabilities.add(Capability.INT8)
            return self.once(Op.TYPE_INT, *_INTEGERS[type_])
        if type_ in _FLOATS:
            if type_ is F16:
                self.capabilities.add(Capability.FLOAT16)
            return self.once(Op.TYPE_FLOAT, _FLOATS[type_])
        if type_ is BF16:
            self.capabilities |= {Capability.BFLOAT16, Capability.BFLOAT16_COOPERATIVE_MATRIX}
            return self.once(Op.TYPE_FLOAT, 16, _BFLOAT16_ENCODING)
        if type_.kind == "struct":
            members = [self.type(member) for _, member in type_.members]
            result = self.new_id()
            self._globals += instruction(Op.TYPE_STRUCT, result, *members)
            return result
        assert type_.element is not None
        element = self.type(type_.element)
        if type_.kind == "vector":
            return self.once(Op.TYPE_VECTOR, element, type_.count)
        if type_.kind == "matrix":
            return self.once(Op.TYPE_MATRIX, element, type_.count)
        if type_.kind == "array":
            return self.once(Op.TYPE_ARRAY, element, self.number(U32, type_.count))
        self.capabilities |= {Capability.COOPERATIVE_MATRIX, Capability.VULKAN_MEMORY_MODEL}
        sizes = (_SUBGROUP, type_.rows, type_.count, type_.use)
        return self.once(
            Op.TYPE_COOPERATIVE_MATRIX, element, *(self.number(U32, size) for size in sizes)
        )

    def pointer(self, storage: Storage, type_id: int) -> int:
        """The id of a pointer type."""
        return self.once(Op.TYPE_POINTER, storage, type_id)

    def function_type(self, result: Type, parameters: Sequence[Type]) -> int:
        """The id of a function's type."""
        return self.once(
            Op.TYPE_FUNCTION, self.type(result), *(self.type(parameter) for parameter in parameters)
        )

    def number(self, type_: Type, value: Number) -> int:
        """A scalar constant, or a vector with one value in every component."""
        if type_.kind == "vector":
            assert type_.element is not None
            return self.composite(type_, [self.number(type_.element, value)] * type_.count)
        if type_ is BOOL:
            return self._constant(Op.CONSTANT_TRUE if value else Op.CONSTANT_FALSE, self.type(BOOL))
        if type_ in _FLOATS:
            bits = np.array(value, "<f2" if type_ is F16 else "<f4").tobytes().ljust(4, b"\0")
            return self._constant(Op.CONSTANT, self.type(type_), *struct.unpack("<I", bits))
        return self._constant(Op.CONSTANT, self.type(type_), int(value) & 0xFFFFFFFF)

    def composite(self, type_: Type, parts: Sequence[int]) -> int:
        """A constant made of constants."""
        return self._constant(Op.CONSTANT_COMPOSITE, self.type(type_), *parts)

    def null(self, type_: Type) -> int:
        """The zero value of a type."""
        if type_.kind == "matrix_unit":
            assert type_.element is not None
            return self.composite(type_, [self.number(type_.element, 0)])
        return self._constant(Op.CONSTANT_NULL, self.type(type_))

    def variable(self, storage: Storage, type_id: int, name: str) -> int:
        """A module-scope variable."""
        result = self.new_id()
        pointer = self.pointer(storage, type_id)
        self._globals += instruction(Op.VARIABLE, pointer, result, storage)
        self._variables.append((storage, result))
        self.name(result, name)
        return result

    def buffer_type(self, element: Type, stride: int) -> int:
        """A storage buffer's block: one array, as long as the buffer, of ``stride`` bytes each."""
        key = ("buffer", element)
        if key not in self._known:
            items = self.once(Op.TYPE_RUNTIME_ARRAY, self.type(element))
            self.decorate(items, Decoration.ARRAY_STRIDE, stride)
            self._known[key] = self._block([items], [0])
        return self._known[key]

    def record_type(self, members: Sequence[Type]) -> int:
        """A uniform block of scalars of four bytes."""
        return self._block([self.type(m) for m in members], [4 * i for i in range(len(members))])

    def _block(self, members: Sequence[int], offsets: Sequence[int]) -> int:
        result = self.new_id()
        self._globals += instruction(Op.TYPE_STRUCT, result, *members)
        self.decorate(result, Decoration.BLOCK)
        for i, offset in enumerate(offsets):
            self._decorations += instruction(
                Op.MEMBER_DECORATE, result, i, Decoration.OFFSET, offset
            )
        return result

    def math(self, result_type: int, result: int, function: Math, *operands: int) -> list[int]:
        """The words of a call of a GLSL.std.450 function."""
        return [*instruction(Op.EXT_INST, result_type, result, self._math, function, *operands)]

    def words(self, entry: int, workgroup_size: tuple[int, int, int]) -> bytes:
        """The whole module, little-endian, with one compute entry point called ``main``."""
        matrices = Capability.COOPERATIVE_MATRIX in self.capabilities
        # From version 1.4 on an entry point lists every variable, before only its inputs.
        interface = [v for storage, v in self._variables if matrices or storage is Storage.INPUT]
        head: list[int] = []
        for capability in sorted(self.capabilities):
            head += instruction(Op.CAPABILITY, capability)
        for capability in sorted(self.capabilities & _EXTENSIONS.keys()):
            head += instruction(Op.EXTENSION, *_string(_EXTENSIONS[capability]))
        head += instruction(Op.EXT_INST_IMPORT, self._math, *_string("GLSL.std.450"))
        head += instruction(Op.MEMORY_MODEL, 0, 3 if matrices else 1)
        head += instruction(Op.ENTRY_POINT, _GL_COMPUTE, entry, *_string("main"), *interface)
        head += instruction(Op.EXECUTION_MODE, entry, _LOCAL_SIZE, *workgroup_size)
        version = _MATRIX_VERSION if matrices else _VERSION
        words = [_MAGIC, version, 0, self._last + 1, 0, *head]
        words += self._names + self._decorations + self._globals + self.functions
        return struct.pack(f"<{len(words)}I", *words)
