"""Unary minus and the binary operators: WGSL's types and wrap-around, SPIR-V's instructions."""

from __future__ import annotations

import operator
from collections.abc import Callable

from .context import Context, Value
from .opcodes import Op
from .types import (
    ABSTRACT_FLOAT,
    ABSTRACT_INT,
    BOOL,
    F32,
    I32,
    U32,
    Type,
    matrix,
    scalar_of,
    vector,
)

__all__ = ["LEVELS", "binary", "negated", "splat"]

_PRECEDENCE = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="),
    ("<<", ">>"), ("+", "-"), ("*", "/", "%"),
)  # fmt: skip
LEVELS = {op: level for level, ops in enumerate(_PRECEDENCE) for op in ops}
"""How tightly a binary operator binds."""

_ARITHMETIC = {
    "+": {F32: Op.F_ADD, I32: Op.I_ADD, U32: Op.I_ADD},
    "-": {F32: Op.F_SUB, I32: Op.I_SUB, U32: Op.I_SUB},
    "*": {F32: Op.F_MUL, I32: Op.I_MUL, U32: Op.I_MUL},
    "/": {F32: Op.F_DIV, I32: Op.S_DIV, U32: Op.U_DIV},
    "%": {F32: Op.F_REM, I32: Op.S_REM, U32: Op.U_MOD},
}
_BITWISE = {
    "&": {I32: Op.BITWISE_AND, U32: Op.BITWISE_AND, BOOL: Op.LOGICAL_AND},
    "|": {I32: Op.BITWISE_OR, U32: Op.BITWISE_OR, BOOL: Op.LOGICAL_OR},
    "^": {I32: Op.BITWISE_XOR, U32: Op.BITWISE_XOR},
}
_COMPARISONS = {
    "==": {F32: Op.F_ORD_EQUAL, I32: Op.I_EQUAL, U32: Op.I_EQUAL, BOOL: Op.LOGICAL_EQUAL},
    "!=": {
        F32: Op.F_UNORD_NOT_EQUAL, I32: Op.I_NOT_EQUAL, U32: Op.I_NOT_EQUAL,
        BOOL: Op.LOGICAL_NOT_EQUAL,
    },
    "<": {F32: Op.F_ORD_LESS_THAN, I32: Op.S_LESS_THAN, U32: Op.U_LESS_THAN},
    ">": {F32: Op.F_ORD_GREATER_THAN, I32: Op.S_GREATER_THAN, U32: Op.U_GREATER_THAN},
    "<=": {F32: Op.F_ORD_LESS_THAN_EQUAL, I32: Op.S_LESS_THAN_EQUAL, U32: Op.U_LESS_THAN_EQUAL},
    ">=": {
        F32: Op.F_ORD_GREATER_THAN_EQUAL, I32: Op.S_GREATER_THAN_EQUAL,
        U32: Op.U_GREATER_THAN_EQUAL,
    },
}  # fmt: skip


def _quotient(a: int, b: int) -> int:
    """Toward zero, as WGSL divides."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_FOLDED: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": _quotient,
    "%": lambda a, b: a - _quotient(a, b) * b, "&": operator.and_, "|": operator.or_,
    "^": operator.xor, "<<": lambda a, b: a << (b & 31), ">>": lambda a, b: a >> (b & 31),
}  # fmt: skip
_FOLDED_FLOATS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip


def _wrapped(number: int, type_: Type) -> int:
    if type_ is U32:
        return number & 0xFFFFFFFF
    return (number + 2**31) % 2**32 - 2**31 if type_ is I32 else number


def negated(c: Context, operand: Value) -> Value:
    """Unary minus."""
    type_ = operand.type
    scalar = scalar_of(type_)
    if scalar in (BOOL, U32) or type_.kind not in ("abstract", "scalar", "vector"):
        raise c.error(f"- does not apply to {type_}")
    if operand.number is not None:
        # A float's minus is exact; -(-2^31) stays what it is.
        number = -operand.number
        if isinstance(operand.number, int) and scalar is F32:
            number = -float(operand.number)
        return Value(type_, 0, _wrapped(number, type_) if isinstance(number, int) else number)
    op = Op.F_NEGATE if scalar is F32 else Op.S_NEGATE
    return c.emit(op, type_, c.id(operand))


def binary(c: Context, sign: str, left: Value, right: Value) -> Value:
    """A binary operator other than ``&&`` and ``||``."""
    if sign in ("<<", ">>"):
        return _shift(c, sign, left, right)
    if "matrix_unit" in (left.type.kind, right.type.kind):
        return _elementwise(c, sign, left, right)
    if left.type.kind == "matrix" or right.type.kind == "matrix":
        return _matrix_product(c, sign, left, right)
    left, right = _alike(c, left, right)
    folded = _fold(c, sign, left, right)
    if folded is not None:
        return folded
    left, right = c.concrete(left), c.concrete(right)
    if sign in _ARITHMETIC and left.type is not right.type:
        if sign == "*" and scalar_of(left.type) is F32 is scalar_of(right.type):
            return _scaled(c, left, right)
        left, right = splat(c, left, right.type), splat(c, right, left.type)
    table = _ARITHMETIC.get(sign) or _BITWISE.get(sign) or _COMPARISONS[sign]
    op = table.get(scalar_of(left.type))
    if op is None or left.type is not right.type or left.type.kind not in ("scalar", "vector"):
        raise c.error(f"{sign} does not apply to {left.type} and {right.type}")
    result = left.type
    if sign in _COMPARISONS:
        result = vector(left.type.count, BOOL) if left.type.kind == "vector" else BOOL
    if sign in ("/", "%") and scalar_of(left.type) is not F32 and right.number is None:
        c.costly += 1
        right = _safe_divisor(c, left, right)
    if sign == "%" and op is Op.S_REM:
        # OpSRem is left open by Vulkan where an operand is negative.
        quotient = c.emit(Op.S_DIV, result, c.id(left), c.id(right))
        return binary(c, "-", left, binary(c, "*", quotient, right))
    return c.emit(op, result, c.id(left), c.id(right))


def _safe_divisor(c: Context, left: Value, right: Value) -> Value:
    """1 in place of 0, and of -1 under -2^31: what WGSL defines, where SPIR-V leaves it open."""
    kind = right.type
    unsafe = binary(c, "==", right, Value(kind, 0, 0))
    if scalar_of(kind) is I32:
        lowest = binary(c, "==", left, Value(kind, 0, -(2**31)))
        overflow = binary(c, "&", lowest, binary(c, "==", right, Value(kind, 0, -1)))
        unsafe = binary(c, "|", unsafe, overflow)
    return c.emit(Op.SELECT, kind, c.id(unsafe), c.id(Value(kind, 0, 1)), c.id(right))


def splat(c: Context, operand: Value, wanted: Type) -> Value:
    """A scalar as a vector of ``wanted``'s width, if that is a vector of such scalars."""
    if wanted.kind != "vector" or wanted.element is not operand.type:
        return operand
    if operand.number is not None:
        return Value(wanted, 0, operand.number)
    return c.emit(Op.COMPOSITE_CONSTRUCT, wanted, *[operand.id] * wanted.count)


def _alike(c: Context, left: Value, right: Value) -> tuple[Value, Value]:
    """Literals take the other side's component type."""
    if left.type.kind == right.type.kind == "abstract":
        if ABSTRACT_FLOAT in (left.type, right.type):
            left = Value(ABSTRACT_FLOAT, 0, left.number)
            right = Value(ABSTRACT_FLOAT, 0, right.number)
        return left, right
    if left.type.kind == "abstract":
        left = c.convert(left, scalar_of(right.type))
    elif right.type.kind == "abstract":
        right = c.convert(right, scalar_of(left.type))
    return left, right


def _fold(c: Context, sign: str, left: Value, right: Value) -> Value | None:
    """Integers and literals are computed here; a float of a stated type is left to the device."""
    a, b, type_ = left.number, right.number, left.type
    if a is None or b is None or type_ is not right.type:
        return None
    if type_ is ABSTRACT_FLOAT and sign in _FOLDED_FLOATS:
        if sign == "/" and not b:
            raise c.error("division by zero")
        return Value(type_, 0, _FOLDED_FLOATS[sign](a, b))
    if type_ in (ABSTRACT_INT, I32, U32) and sign in _FOLDED:
        if sign in ("/", "%") and not b:
            raise c.error("division by zero")
        return Value(type_, 0, _wrapped(_FOLDED[sign](int(a), int(b)), type_))
    return None


def _shift(c: Context, sign: str, left: Value, right: Value) -> Value:
    """Shifts; as in WGSL the amount counts modulo 32."""
    if right.type is ABSTRACT_INT:
        right = c.convert(right, U32)
    if left.type is ABSTRACT_INT and right.number is None:
        left = c.concrete(left)
    if left.number is not None and right.number is not None and left.type.kind != "vector":
        number = _FOLDED[sign](int(left.number), int(right.number))
        return Value(left.type, 0, _wrapped(number, left.type))
    left = c.concrete(left)
    scalar = scalar_of(left.type)
    right = splat(c, right, vector(left.type.count, U32)) if left.type.kind == "vector" else right
    same_width = left.type.kind == right.type.kind and left.type.count == right.type.count
    if scalar not in (I32, U32) or scalar_of(right.type) is not U32 or not same_width:
        raise c.error(f"{sign} does not apply to {left.type} and {right.type}")
    if right.number is None:
        mask = c.assembler.number(right.type, 31)
        right = c.emit(Op.BITWISE_AND, right.type, c.id(right), mask)
    elif right.number > 31:
        raise c.error(f"a shift by {right.number} bits")
    op = Op.SHIFT_LEFT_LOGICAL
    if sign == ">>":
        op = Op.SHIFT_RIGHT_LOGICAL if scalar is U32 else Op.SHIFT_RIGHT_ARITHMETIC
    return c.emit(op, left.type, c.id(left), c.id(right))


def _scaled(c: Context, left: Value, right: Value) -> Value:
    """A vector times a scalar, in either order."""
    if left.type is F32:
        left, right = right, left
    if left.type.kind != "vector" or right.type is not F32:
        raise c.error(f"* does not apply to {left.type} and {right.type}")
    return c.emit(Op.VECTOR_TIMES_SCALAR, left.type, c.id(left), c.id(right))


def _elementwise(c: Context, sign: str, left: Value, right: Value) -> Value:
    """Sums, differences and products, element by element, of two matrices of the matrix units.

    Of a product the right one may be a scalar.
    """
    scaled = sign == "*" and left.type.kind == "matrix_unit" != right.type.kind
    if scaled:
        right = c.convert(right, scalar_of(left.type)) if right.type.kind == "abstract" else right
    element = left.type.element
    op = _ARITHMETIC[sign].get(element) if sign in ("+", "-", "*") and element else None
    if op is None or right.type is not (element if scaled else left.type):
        raise c.error(f"{sign} does not apply to {left.type} and {right.type}")
    op = Op.MATRIX_TIMES_SCALAR if scaled else op
    return c.emit(op, left.type, c.id(left), c.id(right))


def _matrix_product(c: Context, sign: str, left: Value, right: Value) -> Value:
    left, right = _alike(c, left, right)
    found = _product_of_matrices(left.type, right.type) if sign == "*" else None
    if found is None:
        raise c.error(f"{sign} does not apply to {left.type} and {right.type}")
    op, result = found
    if left.type is F32:
        left, right = right, left
    return c.emit(op, result, c.id(left), c.id(right))


def _product_of_matrices(left: Type, right: Type) -> tuple[Op, Type] | None:
    """The instruction of a product with a matrix in it, and the product's type."""
    rows = left.element.count if left.kind == "matrix" and left.element else 0
    across = vector(left.count, F32)
    if left.kind == "matrix" and right is F32:
        return Op.MATRIX_TIMES_SCALAR, left
    if right.kind == "matrix" and left is F32:
        return Op.MATRIX_TIMES_SCALAR, right
    if left.kind == "matrix" and right is across:
        return Op.MATRIX_TIMES_VECTOR, vector(rows, F32)
    if right.kind == "matrix" and right.element is left:
        return Op.VECTOR_TIMES_MATRIX, vector(right.count, F32)
    if left.kind == right.kind == "matrix" and right.element is across:
        return Op.MATRIX_TIMES_MATRIX, matrix(right.count, rows)
    return None
