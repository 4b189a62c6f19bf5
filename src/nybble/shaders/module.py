"""A whole shader: its declarations, its functions, its entry point."""

from __future__ import annotations

from dataclasses import dataclass

from .assembler import Assembler, instruction
from .context import Context, Operand, Reference, Value
from .expressions import constant
from .opcodes import BuiltIn, Capability, Decoration, Op, Storage
from .statements import block
from .tokens import Cursor
from .type_names import type_name
from .types import F32, I32, U32, VOID, Type, scalar_of, struct, vector

__all__ = ["Function", "Module", "uses_matrix_units"]

_UVEC3 = vector(3, U32)
_INPUTS = {
    "workgroup_id": (BuiltIn.WORKGROUP_ID, _UVEC3),
    "num_workgroups": (BuiltIn.NUM_WORKGROUPS, _UVEC3),
    "local_invocation_id": (BuiltIn.LOCAL_INVOCATION_ID, _UVEC3),
    "global_invocation_id": (BuiltIn.GLOBAL_INVOCATION_ID, _UVEC3),
    "local_invocation_index": (BuiltIn.LOCAL_INVOCATION_INDEX, U32),
    "subgroup_size": (BuiltIn.SUBGROUP_SIZE, U32),
    "subgroup_id": (BuiltIn.SUBGROUP_ID, U32),
    "subgroup_invocation_id": (BuiltIn.SUBGROUP_LOCAL_INVOCATION_ID, U32),
}
_EXTENSIONS = (
    "subgroups",
    "chromium_experimental_subgroup_matrix",
    "packed_4x8_integer_dot_product",
)
_WORDS = (U32, I32, F32)


@dataclass(frozen=True)
class Function:
    """A function that others may call."""

    id: int
    parameters: tuple[Type, ...]
    result: Type


def uses_matrix_units(source: str) -> bool:
    """Whether a shader multiplies on matrix units, each subgroup its own tiles."""
    return "subgroup_matrix" in source


class Module:
    """Compiles a shader's text; functions are compiled where they are first called."""

    def __init__(self, source: str) -> None:
        self.cursor = Cursor(source)
        self.assembler = Assembler()
        self.uses_matrix_units = uses_matrix_units(source)
        self.types: dict[str, Type] = {}
        self.names: dict[str, Operand] = {}
        self.workgroup_size: tuple[int, int, int] = (0, 0, 0)
        self._functions: dict[str, Function | None] = {}
        self._begins: dict[str, int] = {}
        self._entry = -1
        self._outside = Context(self, VOID)
        while not self.cursor.done:
            self._declaration()
        if self._entry < 0:
            raise self.cursor.error("the shader has no @compute function")

    def compile(self) -> bytes:
        """The module in SPIR-V."""
        self.cursor.at = self._entry
        return self.assembler.words(self._entry_point(), self.workgroup_size)

    def has_function(self, name: str) -> bool:
        """Whether the shader has a function of this name."""
        return name in self._begins

    def function(self, name: str) -> Function:
        """A function of the shader, compiled on its first use."""
        if name not in self._functions:
            self._functions[name] = None
            here, self.cursor.at = self.cursor.at, self._begins[name]
            self._functions[name] = self._compile(name)
            self.cursor.at = here
        found = self._functions[name]
        if found is None:
            raise self.cursor.error(f"'{name}' calls itself")
        return found

    def _declaration(self) -> None:
        cursor = self.cursor
        word = cursor.now
        if word == "@":
            self._attributed()
        elif word in ("enable", "requires"):
            cursor.take()
            while cursor.between(";"):
                extension = cursor.take()
                if extension not in _EXTENSIONS:
                    raise cursor.error(f"extension '{extension}' is not supported")
        elif word == "struct":
            cursor.take()
            self._struct()
        elif word == "const":
            cursor.take()
            self._constant()
        elif word == "var":
            cursor.take()
            self._workgroup_variable()
        elif word == "fn":
            cursor.take()
            self._function_header()
        elif not cursor.accept(";"):
            raise cursor.error(f"'{word}' is not supported outside functions")

    def _attributed(self) -> None:
        """``@group(0) @binding(i) var<...>`` or ``@compute @workgroup_size(x) fn``."""
        cursor = self.cursor
        found: dict[str, list[int]] = {}
        while cursor.accept("@"):
            name = cursor.name()
            found[name] = []
            if cursor.accept("("):
                while cursor.between(")"):
                    value = constant(self._outside).number
                    found[name].append(int(value or 0))
        if cursor.accept("var") and found.keys() == {"group", "binding"}:
            self._binding(found["group"][0], found["binding"][0])
        elif cursor.accept("fn") and found.keys() == {"compute", "workgroup_size"}:
            x, y, z = (*found["workgroup_size"], 1, 1)[:3]
            self.workgroup_size = (x, y, z)
            self._entry = cursor.at
            self._function_header()
        else:
            raise cursor.error(f"attributes {', '.join(found)} are not supported here")

    def _struct(self) -> None:
        name = self.cursor.name()
        members: list[tuple[str, Type]] = []
        self.cursor.expect("{")
        while self.cursor.between("}"):
            member = self.cursor.name()
            self.cursor.expect(":")
            members.append((member, type_name(self._outside)))
        self.types[name] = struct(name, tuple(members))

    def _constant(self) -> None:
        name = self.cursor.name()
        wanted = type_name(self._outside) if self.cursor.accept(":") else None
        self.cursor.expect("=")
        value = constant(self._outside)
        self.names[name] = self._outside.convert(value, wanted) if wanted else value
        self.cursor.expect(";")

    def _workgroup_variable(self) -> None:
        cursor = self.cursor
        cursor.expect("<")
        space = cursor.name()
        if space != "workgroup":
            raise cursor.error(f"variables of the address space '{space}' are not supported")
        cursor.expect(">")
        name = cursor.name()
        cursor.expect(":")
        type_ = type_name(self._outside)
        cursor.expect(";")
        root = self.assembler.variable(Storage.WORKGROUP, self.assembler.type(type_), name)
        self.names[name] = Reference(type_, Storage.WORKGROUP, root)

    def _binding(self, group: int, binding: int) -> None:
        cursor = self.cursor
        cursor.expect("<")
        space = cursor.name()
        access = cursor.name() if cursor.accept(",") else "read"
        cursor.expect(">")
        name = cursor.name()
        cursor.expect(":")
        type_ = type_name(self._outside)
        cursor.expect(";")
        if space == "storage" and access in ("read", "read_write"):
            self.names[name] = self._buffer(name, type_, writable=access == "read_write")
        elif space == "uniform" and all(t in _WORDS for _, t in type_.members) and type_.members:
            block_type = self.assembler.record_type([t for _, t in type_.members])
            root = self.assembler.variable(Storage.UNIFORM, block_type, name)
            self.names[name] = Reference(type_, Storage.UNIFORM, root, (), writable=False)
        else:
            raise cursor.error(f"a binding '{space}, {access}' of {type_} is not supported")
        operand = self.names[name]
        assert isinstance(operand, Reference)
        self.assembler.decorate(operand.root, Decoration.DESCRIPTOR_SET, group)
        self.assembler.decorate(operand.root, Decoration.BINDING, binding)

    def _buffer(self, name: str, type_: Type, *, writable: bool) -> Reference:
        element = type_.element
        if type_.kind != "array" or type_.count or element is None:
            raise self.cursor.error(f"buffer '{name}' is {type_}, expected array<...>")
        if scalar_of(element) not in _WORDS or element.count == 3 or element.kind == "array":
            raise self.cursor.error(f"buffers of {element} are not supported")
        block_type = self.assembler.buffer_type(element, 4 * element.count)
        root = self.assembler.variable(Storage.STORAGE_BUFFER, block_type, name)
        # A plan never binds a written buffer twice in a dispatch.
        self.assembler.decorate(root, Decoration.RESTRICT)
        if not writable:
            self.assembler.decorate(root, Decoration.NON_WRITABLE)
        first = (self.assembler.number(U32, 0),)
        return Reference(type_, Storage.STORAGE_BUFFER, root, first, writable)

    def _function_header(self) -> None:
        """Note where a function begins and move past it."""
        begins = self.cursor.at
        name = self.cursor.name()
        if begins != self._entry:
            self._begins[name] = begins
        while not self.cursor.accept("{"):
            if self.cursor.done:
                raise self.cursor.error(f"function '{name}' has no body")
            self.cursor.take()
        self.cursor.skip("{", "}")

    def _compile(self, name: str) -> Function:
        cursor = self.cursor
        cursor.name()
        cursor.expect("(")
        context = Context(self, VOID)
        words: list[int] = []
        types: list[Type] = []
        while cursor.between(")"):
            parameter = cursor.name()
            cursor.expect(":")
            types.append(type_name(context))
            given = Value(types[-1], self.assembler.new_id())
            words += instruction(Op.FUNCTION_PARAMETER, self.assembler.type(given.type), given.id)
            context.declare(parameter, given)
        if cursor.accept("-"):
            raise cursor.error("expected '->'")
        context.result = type_name(context) if cursor.accept("->") else VOID
        function = Function(self.assembler.new_id(), tuple(types), context.result)
        self.assembler.name(function.id, name)
        self._finish(context, function, words)
        return function

    def _entry_point(self) -> int:
        cursor = self.cursor
        cursor.name()
        cursor.expect("(")
        context = Context(self, VOID)
        while cursor.between(")"):
            self._input(context)
        function = Function(self.assembler.new_id(), (), VOID)
        self._finish(context, function, [])
        return function.id

    def _input(self, context: Context) -> None:
        cursor = self.cursor
        for expected in ("@", "builtin", "("):
            cursor.expect(expected)
        known = cursor.name()
        cursor.expect(")")
        name = cursor.name()
        cursor.expect(":")
        type_ = type_name(context)
        if known not in _INPUTS or _INPUTS[known][1] is not type_:
            raise cursor.error(f"the input '{known}' of {type_} is not supported")
        built_in = _INPUTS[known][0]
        if known.startswith("subgroup"):
            self.assembler.capabilities.add(Capability.GROUP_NON_UNIFORM)
        root = self.assembler.variable(Storage.INPUT, self.assembler.type(type_), known)
        self.assembler.decorate(root, Decoration.BUILT_IN, built_in)
        context.declare(name, context.load(Reference(type_, Storage.INPUT, root)))

    def _finish(self, context: Context, function: Function, words: list[int]) -> None:
        """Compile a body and append the whole function."""
        begun = context.block
        block(context)
        if context.live:
            context.do(Op.RETURN if function.result is VOID else Op.UNREACHABLE)
        type_ = self.assembler.function_type(function.result, function.parameters)
        result = self.assembler.type(function.result)
        self.assembler.functions += [
            *instruction(Op.FUNCTION, result, function.id, 0, type_), *words,
            *instruction(Op.LABEL, begun), *context.variables, *context.body,
            *instruction(Op.FUNCTION_END),
        ]  # fmt: skip
