"""Expressions: parsed and emitted in one pass, by precedence."""

from __future__ import annotations

from .builtins import BUILTINS, bitcast
from .constructors import construct
from .context import Context, Operand, Reference, Value
from .memory_calls import MEMORY_CALLS
from .opcodes import Op, Storage
from .operators import LEVELS, binary, negated
from .type_names import begins_type, type_name
from .types import (
    ABSTRACT_FLOAT,
    ABSTRACT_INT,
    BOOL,
    F32,
    I32,
    U32,
    VOID,
    Type,
    vector,
)

__all__ = ["constant", "constant_size", "expression", "place", "value"]

_COMPONENTS = {letter: i for letters in ("xyzw", "rgba") for i, letter in enumerate(letters)}
_SUFFIXES = {"u": U32, "i": I32, "f": F32}


def value(c: Context) -> Value:
    """Parse an expression and load what it refers to."""
    return c.load(expression(c))


def expression(c: Context, level: int = 0) -> Operand:
    """Parse an expression whose operators bind at least as tightly as ``level``."""
    left = _unary(c)
    while True:
        operator = c.cursor.now
        at = LEVELS.get(operator, -1)
        if at < level:
            return left
        c.cursor.take()
        if operator in ("&&", "||"):
            left = _shortcut(c, operator, c.load(left), at + 1)
        else:
            first = c.load(left)
            left = binary(c, operator, first, c.load(expression(c, at + 1)))


def _shortcut(c: Context, operator: str, left: Value, level: int) -> Value:
    """``&&`` and ``||``: the right side is branched around where evaluating it is not free."""
    before, begun, costly = c.body, c.block, c.costly
    merge, right_block = c.assembler.new_id(), c.assembler.new_id()
    c.body, c.block = [], right_block
    right = c.load(expression(c, level))
    if left.type is not BOOL or right.type is not BOOL:
        raise c.error(f"{operator} needs two bools, received {left.type} and {right.type}")
    is_and = operator == "&&"
    inner, c.body = c.body, before
    if c.costly == costly:
        c.body += inner
        c.block = begun
        op = Op.LOGICAL_AND if is_and else Op.LOGICAL_OR
        return c.emit(op, BOOL, c.id(left), c.id(right))
    c.do(Op.SELECTION_MERGE, merge, 0)
    targets = (right_block, merge) if is_and else (merge, right_block)
    c.do(Op.BRANCH_CONDITIONAL, c.id(left), *targets)
    c.do(Op.LABEL, right_block)
    c.body += inner
    ended = c.block
    c.do(Op.BRANCH, merge)
    c.label(merge)
    decided = c.assembler.number(BOOL, not is_and)
    return c.emit(Op.PHI, BOOL, decided, begun, c.id(right), ended)


def _unary(c: Context) -> Operand:
    word = c.cursor.now
    if word == "-":
        c.cursor.take()
        return negated(c, c.load(_unary(c)))
    if word in ("!", "~"):
        c.cursor.take()
        operand = c.concrete(c.load(_unary(c)))
        scalar = operand.type.element or operand.type
        if (scalar is BOOL) != (word == "!") or scalar is F32:
            raise c.error(f"{word} does not apply to {operand.type}")
        return c.emit(Op.LOGICAL_NOT if word == "!" else Op.NOT, operand.type, c.id(operand))
    return place(c)


def place(c: Context) -> Operand:
    """Parse a name, a call or a bracketed expression, and the members and indices behind it."""
    operand = _primary(c)
    while True:
        if c.cursor.accept("."):
            operand = _member(c, operand, c.cursor.name())
        elif c.cursor.accept("["):
            index = value(c)
            c.cursor.expect("]")
            operand = _element(c, operand, index)
        else:
            return operand


def _primary(c: Context) -> Operand:
    word = c.cursor.now
    if word[0].isdigit() or (word[0] == "." and len(word) > 1):
        c.cursor.take()
        return _literal(c, word)
    if c.cursor.accept("("):
        inner = expression(c)
        c.cursor.expect(")")
        return inner
    if word in ("true", "false"):
        c.cursor.take()
        return Value(BOOL, 0, word == "true")
    name = c.cursor.name()
    operand = c.look_up(name)
    if operand is not None:
        return operand
    c.cursor.at -= 1
    if begins_type(c.module, name):
        made = type_name(c, inferred=True)
        return construct(c, made, arguments(c))
    c.cursor.take()
    return _call(c, name)


def _literal(c: Context, word: str) -> Value:
    hexadecimal = word[:2] in ("0x", "0X")
    if word[-1] == "h":
        raise c.error("f16 literals are not supported")
    suffix = _SUFFIXES.get(word[-1]) if not (hexadecimal and word[-1] == "f") else None
    text = word[:-1] if suffix else word
    if suffix is F32 or (not hexadecimal and any(mark in text for mark in ".eE")):
        literal = Value(ABSTRACT_FLOAT, 0, float(text))
    else:
        literal = Value(ABSTRACT_INT, 0, int(text, 16 if hexadecimal else 10))
    return c.convert(literal, suffix) if suffix else literal


def arguments(c: Context) -> list[Value]:
    """Parse a bracketed list of expressions."""
    c.cursor.expect("(")
    found: list[Value] = []
    while c.cursor.between(")"):
        found.append(value(c))
    return found


def _call(c: Context, name: str) -> Value:
    if name == "bitcast":
        c.cursor.expect("<")
        wanted = type_name(c)
        c.cursor.expect(">")
        (operand,) = _counted(c, name, arguments(c), 1)
        return bitcast(c, wanted, operand)
    if name in MEMORY_CALLS:
        return _memory_call(c, name)
    if name in BUILTINS:
        count, build = BUILTINS[name]
        return build(c, _counted(c, name, arguments(c), count))
    if not c.module.has_function(name):
        raise c.error(f"'{name}' is not known here")
    given = arguments(c)
    function = c.module.function(name)
    given = _counted(c, name, given, len(function.parameters))
    ids = [c.id(c.convert(v, wanted)) for v, wanted in zip(given, function.parameters, strict=True)]
    c.costly += 1
    return c.emit(Op.FUNCTION_CALL, function.result, function.id, *ids)


def _memory_call(c: Context, name: str) -> Value:
    """A call whose arguments may be addresses, and that may have a type parameter."""
    type_: Type | None = None
    if c.cursor.accept("<"):
        type_ = type_name(c)
        c.cursor.expect(">")
    c.cursor.expect("(")
    operands: list[Operand] = []
    while c.cursor.between(")"):
        operands.append(place(c) if c.cursor.accept("&") else value(c))
    return MEMORY_CALLS[name](c, type_, operands)


def _counted(c: Context, name: str, given: list[Value], count: int) -> list[Value]:
    if len(given) != count:
        raise c.error(f"{name} takes {count} arguments, received {len(given)}")
    if any(v.type is VOID for v in given):
        raise c.error(f"an argument of {name} has no value")
    return given


def _member(c: Context, operand: Operand, name: str) -> Operand:
    type_ = operand.type
    if type_.kind == "struct":
        names = [member for member, _ in type_.members]
        if name not in names:
            raise c.error(f"{type_} has no member '{name}', only {', '.join(names)}")
        at = names.index(name)
        return _part(c, operand, type_.members[at][1], at)
    if type_.kind != "vector":
        raise c.error(f"{type_} has no members")
    assert type_.element is not None
    picked = [_COMPONENTS.get(letter, 4) for letter in name]
    if len(picked) > 4 or max(picked) >= type_.count:
        raise c.error(f"{type_} has no component '{name}'")
    if len(picked) == 1:
        return _part(c, operand, type_.element, picked[0])
    source = c.id(c.load(operand))
    return c.emit(Op.VECTOR_SHUFFLE, vector(len(picked), type_.element), source, source, *picked)


def _part(c: Context, operand: Operand, type_: Type, at: int) -> Operand:
    """A part of a composite at a known index."""
    if isinstance(operand, Reference):
        return _inside(operand, type_, c.u32(at))
    if operand.number is not None:
        return Value(type_, 0, operand.number)
    return c.emit(Op.COMPOSITE_EXTRACT, type_, operand.id, at)


def _inside(outer: Reference, type_: Type, index: int) -> Reference:
    return Reference(type_, outer.storage, outer.root, (*outer.indices, index), outer.writable)


def _element(c: Context, operand: Operand, index: Value) -> Operand:
    type_ = operand.type
    index = c.concrete(index)
    if type_.kind not in ("vector", "matrix", "array") or index.type not in (I32, U32):
        raise c.error(f"{type_} cannot be indexed by {index.type}")
    element = type_.element
    assert element is not None
    if index.number is not None:
        if index.number < 0 or index.number >= type_.count > 0:
            raise c.error(f"index {index.number} is outside {type_}")
        if isinstance(operand, Value):
            return _part(c, operand, element, int(index.number))
    if isinstance(operand, Reference):
        c.costly += operand.storage in (Storage.STORAGE_BUFFER, Storage.WORKGROUP)
        return _inside(operand, element, c.id(index))
    if type_.kind == "vector":
        return c.emit(Op.VECTOR_EXTRACT_DYNAMIC, element, c.id(operand), c.id(index))
    spilled = c.local(type_)
    c.store(spilled, operand)
    return _inside(spilled, element, c.id(index))


def constant(c: Context) -> Value:
    """Parse an expression that is known when the shader is compiled.

    Raises:
        ShaderError: it is not.
    """
    known = value(c)
    if known.number is None:
        raise c.error("expected a constant")
    return known


def constant_size(c: Context, level: int) -> int:
    """Parse a constant positive integer, by operators from ``level`` on.

    Raises:
        ShaderError: it is none.
    """
    known = c.load(expression(c, level))
    if not isinstance(known.number, int) or known.number < 1:
        raise c.error("expected a constant size of at least 1")
    return known.number
