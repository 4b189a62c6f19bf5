"""Value constructors and conversions: ``vec4<f32>(x)``, ``u32(x)``, ``Part(a, b)``."""

from __future__ import annotations

from .context import Context, Value
from .opcodes import Math, Op
from .operators import splat
from .types import (
    ABSTRACT_FLOAT,
    BOOL,
    F32,
    I32,
    U32,
    Type,
    array,
    scalar_of,
    vector,
)

__all__ = ["construct"]

_LARGEST = {I32: (-(2.0**31), 2.0**31 - 128), U32: (0.0, 2.0**32 - 256)}
"""The float32 numbers next to an integer type's bounds."""


def construct(c: Context, type_: Type, parts: list[Value]) -> Value:
    """A value of ``type_`` from ``parts``; of none, its zero.

    Raises:
        ShaderError: the parts do not fit.
    """
    if type_.element is None and type_.kind in ("vector", "array"):
        type_ = _completed(c, type_, parts)
    if not parts:
        return c.null(type_)
    if type_.kind == "scalar":
        if len(parts) != 1:
            raise c.error(f"{type_} takes one value, received {len(parts)}")
        return _converted(c, type_, parts[0])
    if type_.kind == "vector":
        return _vector(c, type_, parts)
    if type_.kind == "matrix":
        return _matrix(c, type_, parts)
    if type_.kind == "array":
        return _composite(c, type_, parts, [type_.element] * type_.count)
    if type_.kind == "struct":
        return _composite(c, type_, parts, [member for _, member in type_.members])
    if len(parts) != 1:
        raise c.error(f"{type_} takes one value, received {len(parts)}")
    if parts[0].type.kind == "matrix_unit":
        return _converted(c, type_, parts[0])
    part = c.convert(parts[0], scalar_of(type_))
    if part.number is not None:
        return Value(type_, c.assembler.composite(type_, [c.id(part)]))
    return c.emit(Op.COMPOSITE_CONSTRUCT, type_, c.id(part))


def _completed(c: Context, type_: Type, parts: list[Value]) -> Type:
    """The type of ``vec4(...)`` or ``array(...)`` from what it is made of."""
    if not parts:
        raise c.error(f"{type_}() needs a component type")
    typed = [p.type for p in parts if p.type.kind != "abstract"]
    if type_.kind == "array":
        return array((typed or [c.concrete(parts[0]).type])[0], len(parts))
    if typed:
        return vector(type_.count, scalar_of(typed[0]))
    floats = any(p.type is ABSTRACT_FLOAT for p in parts)
    return vector(type_.count, F32 if floats else I32)


def _vector(c: Context, type_: Type, parts: list[Value]) -> Value:
    element = type_.element
    assert element is not None
    if len(parts) == 1 and parts[0].type.kind == "vector":
        return _converted(c, type_, parts[0])
    if len(parts) == 1:
        return splat(c, _component(c, element, parts[0]), type_)
    fitted = [_component(c, element, p) for p in parts]
    width = sum(p.type.count for p in fitted)
    if width != type_.count:
        raise c.error(f"{type_} takes {type_.count} components, received {width}")
    if all(p.number is not None for p in fitted):
        numbers = [p.number for p in fitted for _ in range(p.type.count)]
        if len(set(map(repr, numbers))) == 1:
            return Value(type_, 0, numbers[0])
        ids = [c.id(Value(element, 0, number)) for number in numbers]
        return Value(type_, c.assembler.composite(type_, ids))
    return c.emit(Op.COMPOSITE_CONSTRUCT, type_, *map(c.id, fitted))


def _component(c: Context, element: Type, part: Value) -> Value:
    if part.type.kind == "vector" and part.type.element is element:
        return part
    return c.convert(part, element)


def _matrix(c: Context, type_: Type, parts: list[Value]) -> Value:
    column = type_.element
    assert column is not None
    if len(parts) == type_.count * column.count:
        width = column.count
        rows = [parts[i : i + width] for i in range(0, len(parts), width)]
        parts = [_vector(c, column, row) for row in rows]
    return _composite(c, type_, parts, [column] * type_.count)


def _composite(
    c: Context, type_: Type, parts: list[Value], wanted: list[Type] | list[Type | None]
) -> Value:
    if len(parts) != len(wanted):
        raise c.error(f"{type_} takes {len(wanted)} values, received {len(parts)}")
    ids = []
    for part, member in zip(parts, wanted, strict=True):
        assert member is not None
        ids.append(c.id(c.convert(part, member)))
    return c.emit(Op.COMPOSITE_CONSTRUCT, type_, *ids)


def _converted(c: Context, type_: Type, operand: Value) -> Value:
    """A scalar or a whole vector in another component type."""
    wanted = scalar_of(type_)
    if operand.type.kind == "abstract":
        if wanted is not BOOL and not (operand.type is ABSTRACT_FLOAT and wanted is not F32):
            return c.convert(operand, wanted)
        operand = c.concrete(operand)
    source = scalar_of(operand.type)
    if operand.type.extent != type_.extent:
        raise c.error(f"{type_} cannot be made of {operand.type}")
    if source is wanted:
        return operand
    if type_.kind == "matrix_unit" and (source, wanted) != (I32, F32):
        raise c.error(f"{type_} cannot be made of {operand.type}")
    known = operand.number
    if known is not None and BOOL not in (source, wanted) and source is not F32:
        # Integers of a known value change type here: sizes of arrays depend on it.
        number = float(known) if wanted is F32 else _as_integer(int(known), wanted)
        return Value(type_, 0, number)
    return _conversion(c, type_, operand, source, wanted)


def _as_integer(number: int, wanted: Type) -> int:
    return number & 0xFFFFFFFF if wanted is U32 else (number + 2**31) % 2**32 - 2**31


def _conversion(c: Context, type_: Type, operand: Value, source: Type, wanted: Type) -> Value:
    if source is BOOL:
        one, zero = (c.assembler.number(type_, number) for number in (1, 0))
        return c.emit(Op.SELECT, type_, c.id(operand), one, zero)
    if wanted is BOOL:
        zero = c.id(c.null(operand.type))
        op = Op.F_UNORD_NOT_EQUAL if source is F32 else Op.I_NOT_EQUAL
        return c.emit(op, type_, c.id(operand), zero)
    if wanted is F32:
        op = Op.CONVERT_S_TO_F if source is I32 else Op.CONVERT_U_TO_F
        return c.emit(op, type_, c.id(operand))
    if source is F32:
        # WGSL's conversion saturates, SPIR-V's means nothing beyond the range.
        low, high = (c.assembler.number(operand.type, bound) for bound in _LARGEST[wanted])
        bounded = c.math(Math.N_CLAMP, operand.type, c.id(operand), low, high)
        op = Op.CONVERT_F_TO_S if wanted is I32 else Op.CONVERT_F_TO_U
        return c.emit(op, type_, bounded.id)
    return c.emit(Op.BITCAST, type_, c.id(operand))
