"""Statements: blocks, declarations, assignments and control flow."""

from __future__ import annotations

from .context import Context, Loop, Reference, Value
from .expressions import constant, place, value
from .opcodes import Op
from .operators import binary
from .type_names import type_name
from .types import BOOL, I32, U32, VOID

__all__ = ["block"]

_COMPOUND = {f"{sign}=": sign for sign in ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>")}
_DONT_UNROLL = 2
_BOTH_WAYS = {"++": "+", "--": "-"}


def block(c: Context) -> None:
    """Parse ``{ ... }`` in a scope of its own."""
    c.cursor.expect("{")
    c.scopes.append({})
    while not c.cursor.accept("}"):
        _statement(c)
    c.scopes.pop()


def _statement(c: Context) -> None:
    word = c.cursor.now
    if not c.live and word != ";":
        c.label(c.assembler.new_id())
    if word == "{":
        block(c)
    elif word in _CONTROL:
        c.cursor.take()
        _CONTROL[word](c)
    elif not c.cursor.accept(";"):
        _simple(c)
        c.cursor.expect(";")


def _simple(c: Context) -> None:
    """A declaration, an assignment or a call."""
    word = c.cursor.now
    if word in ("let", "const"):
        c.cursor.take()
        _let(c, known=word == "const")
    elif word == "var":
        c.cursor.take()
        _var(c)
    elif word == "_":
        c.cursor.take()
        c.cursor.expect("=")
        value(c)
    else:
        _assignment(c)


def _let(c: Context, *, known: bool) -> None:
    name = c.cursor.name()
    wanted = type_name(c) if c.cursor.accept(":") else None
    c.cursor.expect("=")
    given = constant(c) if known else value(c)
    if wanted:
        given = c.convert(given, wanted)
    elif not known:
        given = c.concrete(given)
    if given.type is VOID:
        raise c.error(f"'{name}' is given no value")
    c.declare(name, given)


def _var(c: Context) -> None:
    if c.cursor.now == "<":
        raise c.error("variables of this address space belong outside functions")
    name = c.cursor.name()
    wanted = type_name(c) if c.cursor.accept(":") else None
    if c.cursor.accept("="):
        given = value(c)
        given = c.convert(given, wanted) if wanted else c.concrete(given)
    elif wanted:
        given = c.null(wanted)
    else:
        raise c.error(f"variable '{name}' has neither a type nor a value")
    variable = c.local(given.type)
    c.store(variable, given)
    c.declare(name, variable)


def _assignment(c: Context) -> None:
    target = place(c)
    sign = c.cursor.now
    if sign == ";" and isinstance(target, Value) and c.cursor.tokens[c.cursor.at - 1] == ")":
        return
    if not isinstance(target, Reference):
        raise c.error("this is no place that can be written")
    c.cursor.take()
    if sign == "=":
        c.store(target, c.convert(value(c), target.type))
        return
    pointed = Reference(target.type, target.storage, c.pointer(target), (), target.writable)
    if sign in _BOTH_WAYS:
        if target.type not in (I32, U32):
            raise c.error(f"{sign} does not apply to {target.type}")
        given = Value(target.type, 0, 1)
        result = binary(c, _BOTH_WAYS[sign], c.load(pointed), given)
    elif sign in _COMPOUND:
        given = value(c)
        result = binary(c, _COMPOUND[sign], c.load(pointed), given)
    else:
        raise c.error(f"expected an assignment, found '{sign}'")
    c.store(pointed, c.convert(result, target.type))


def _condition(c: Context) -> int:
    given = value(c)
    if given.type is not BOOL:
        raise c.error(f"expected a condition, received {given.type}")
    return c.id(given)


def _if(c: Context) -> None:
    condition = _condition(c)
    merge, chosen, otherwise = (c.assembler.new_id() for _ in range(3))
    c.do(Op.SELECTION_MERGE, merge, 0)
    c.do(Op.BRANCH_CONDITIONAL, condition, chosen, otherwise)
    c.label(chosen)
    block(c)
    c.branch(merge)
    c.label(otherwise)
    if c.cursor.accept("else"):
        if c.cursor.accept("if"):
            _if(c)
        else:
            block(c)
    c.branch(merge)
    c.label(merge)


def _loop_blocks(c: Context) -> tuple[int, Loop]:
    """Begin a loop: its head, and where ``break`` and ``continue`` lead."""
    head, merge, next_, body = (c.assembler.new_id() for _ in range(4))
    c.branch(head)
    c.label(head)
    # A kernel on the matrix units has unrolled what it should: more is code for no cache.
    c.do(Op.LOOP_MERGE, merge, next_, _DONT_UNROLL if c.module.uses_matrix_units else 0)
    c.branch(body)
    c.label(body)
    return head, Loop(merge, next_)


def _leave_unless(c: Context, loop: Loop) -> None:
    """Parse a loop's condition."""
    inside = c.assembler.new_id()
    c.do(Op.BRANCH_CONDITIONAL, _condition(c), inside, loop.merge)
    c.label(inside)


def _body(c: Context, loop: Loop) -> None:
    c.loops.append(loop)
    block(c)
    c.loops.pop()
    c.branch(loop.next)
    c.label(loop.next)


def _for(c: Context) -> None:
    c.cursor.expect("(")
    c.scopes.append({})
    if c.cursor.now != ";":
        _simple(c)
    c.cursor.expect(";")
    head, loop = _loop_blocks(c)
    if c.cursor.now != ";":
        _leave_unless(c, loop)
    c.cursor.expect(";")
    update = c.cursor.at
    c.cursor.skip("(", ")")
    _body(c, loop)
    behind, c.cursor.at = c.cursor.at, update
    if c.cursor.now != ")":
        _assignment_before(c)
    c.cursor.at = behind
    c.branch(head)
    c.label(loop.merge)
    c.scopes.pop()


def _assignment_before(c: Context) -> None:
    """A loop's update, which ends with a bracket."""
    _assignment(c)
    if c.cursor.now != ")":
        raise c.error(f"expected ')', found '{c.cursor.now}'")


def _while(c: Context) -> None:
    head, loop = _loop_blocks(c)
    _leave_unless(c, loop)
    _body(c, loop)
    c.branch(head)
    c.label(loop.merge)


def _loop(c: Context) -> None:
    head, loop = _loop_blocks(c)
    _body(c, loop)
    c.branch(head)
    c.label(loop.merge)


def _return(c: Context) -> None:
    if c.cursor.accept(";"):
        if c.result is not VOID:
            raise c.error(f"return without a value, expected {c.result}")
        c.do(Op.RETURN)
    else:
        given = c.convert(value(c), c.result)
        c.cursor.expect(";")
        c.do(Op.RETURN_VALUE, c.id(given))
    c.live = False


def _break(c: Context) -> None:
    if not c.loops:
        raise c.error("break outside a loop")
    c.cursor.expect(";")
    c.branch(c.loops[-1].merge)


def _continue(c: Context) -> None:
    if not c.loops:
        raise c.error("continue outside a loop")
    c.cursor.expect(";")
    c.branch(c.loops[-1].next)


def _refused(c: Context) -> None:
    raise c.error(f"'{c.cursor.tokens[c.cursor.at - 1]}' is not supported")


_CONTROL = {
    "if": _if, "for": _for, "while": _while, "loop": _loop, "return": _return, "break": _break,
    "continue": _continue, "switch": _refused, "continuing": _refused, "discard": _refused,
}  # fmt: skip
