"""Built-in functions that take a place in memory, barriers, and the matrix units.

The matrix units are written as in Dawn's extension ``chromium_experimental_subgroup_matrix``;
offsets and strides count elements of the array that a pointer leads to.
"""

from __future__ import annotations

from collections.abc import Callable

from .context import Context, Operand, Reference, Value
from .opcodes import Op, Storage
from .types import BOOL, I8, I32, U32, VOID, Type, matrix_unit

__all__ = ["MEMORY_CALLS"]

Build = Callable[[Context, Type | None, list[Operand]], Value]

_WORKGROUP = 2
_ACQUIRE_RELEASE = 0x8
_AVAILABLE_VISIBLE = 0x6000
_MEMORY = {"workgroupBarrier": 0x100, "storageBarrier": 0x40}
_NON_PRIVATE = 0x20
_SIGNED_LEFT, _SIGNED_RIGHT, _SIGNED_SUM, _SIGNED_RESULT = 1, 2, 4, 8


def _barrier(name: str) -> Build:
    def build(c: Context, _: Type | None, operands: list[Operand]) -> Value:
        _expect(c, name, operands, 0)
        order = _ACQUIRE_RELEASE | _MEMORY[name]
        if c.module.uses_matrix_units:
            order |= _AVAILABLE_VISIBLE
        c.costly += 1
        c.do(Op.CONTROL_BARRIER, c.u32(_WORKGROUP), c.u32(_WORKGROUP), c.u32(order))
        return Value(VOID)

    return build


def _expect(c: Context, name: str, operands: list[Operand], count: int) -> None:
    if len(operands) != count:
        raise c.error(f"{name} takes {count} arguments, received {len(operands)}")


def _buffer(c: Context, name: str, operand: Operand) -> Reference:
    if not isinstance(operand, Reference) or operand.type.kind != "array":
        raise c.error(f"{name} needs the address of an array, such as &x")
    return operand


def _array_length(c: Context, _: Type | None, operands: list[Operand]) -> Value:
    _expect(c, "arrayLength", operands, 1)
    place = _buffer(c, "arrayLength", operands[0])
    if place.storage is not Storage.STORAGE_BUFFER:
        raise c.error("arrayLength is for storage buffers")
    return c.emit(Op.ARRAY_LENGTH, U32, place.root, 0)


def _first(c: Context, place: Reference, offset: Operand) -> int:
    """The id of a pointer to an element of an array."""
    index = c.id(c.convert(c.load(offset), U32))
    element = place.type.element
    assert element is not None
    indices = (*place.indices, index)
    return c.pointer(Reference(element, place.storage, place.root, indices, place.writable))


def _layout(c: Context, by_columns: Operand) -> int:
    """0 for rows one after the other, 1 for columns."""
    known = c.load(by_columns)
    if known.type is not BOOL or known.number is None:
        raise c.error("whether a matrix is stored by columns must be a constant")
    return c.u32(int(known.number))


def _load(c: Context, type_: Type | None, operands: list[Operand]) -> Value:
    name = "subgroupMatrixLoad"
    _expect(c, name, operands, 4)
    if type_ is None or type_.kind != "matrix_unit":
        raise c.error(f"{name} needs the type of a matrix: {name}<subgroup_matrix_left<...>>(...)")
    pointer = _first(c, _buffer(c, name, operands[0]), operands[1])
    stride = c.id(c.convert(c.load(operands[3]), U32))
    c.costly += 1
    return c.emit(
        Op.COOPERATIVE_MATRIX_LOAD, type_, pointer, _layout(c, operands[2]), stride, _NON_PRIVATE
    )


def _store(c: Context, _: Type | None, operands: list[Operand]) -> Value:
    name = "subgroupMatrixStore"
    _expect(c, name, operands, 5)
    place = _buffer(c, name, operands[0])
    stored = c.load(operands[2])
    if not place.writable or stored.type.kind != "matrix_unit":
        raise c.error(f"{name} needs a writable array and a matrix")
    stride = c.id(c.convert(c.load(operands[4]), U32))
    c.do(
        Op.COOPERATIVE_MATRIX_STORE, _first(c, place, operands[1]), c.id(stored),
        _layout(c, operands[3]), stride, _NON_PRIVATE,
    )  # fmt: skip
    return Value(VOID)


def _multiply(c: Context, _: Type | None, operands: list[Operand]) -> Value:
    name = "subgroupMatrixMultiplyAccumulate"
    _expect(c, name, operands, 3)
    left, right, total = (c.load(operand) for operand in operands)
    a, b, result = left.type, right.type, total.type
    if any(t.kind != "matrix_unit" for t in (a, b, result)) or (a.use, b.use, result.use) != (
        0, 1, 2,
    ):  # fmt: skip
        raise c.error(f"{name} takes a left, a right and a result matrix")
    assert result.element is not None
    if a.count != b.rows or result is not matrix_unit(2, result.element, b.count, a.rows):
        raise c.error(f"{a}, {b} and {result} do not fit together")
    signs = _SIGNED_LEFT if a.element is I8 else 0
    signs |= _SIGNED_RIGHT if b.element is I8 else 0
    signs |= _SIGNED_SUM | _SIGNED_RESULT if result.element is I32 else 0
    ids = (c.id(left), c.id(right), c.id(total))
    return c.emit(Op.COOPERATIVE_MATRIX_MUL_ADD, result, *ids, *((signs,) if signs else ()))


MEMORY_CALLS: dict[str, Build] = {
    "workgroupBarrier": _barrier("workgroupBarrier"),
    "storageBarrier": _barrier("storageBarrier"),
    "arrayLength": _array_length,
    "subgroupMatrixLoad": _load,
    "subgroupMatrixStore": _store,
    "subgroupMatrixMultiplyAccumulate": _multiply,
}
"""What makes the instructions of a call, from its type parameter and its operands."""
