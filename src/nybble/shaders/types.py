"""The types of shaders: WGSL's scalars, vectors, matrices, arrays, structs and matrix units.

Equal types are one object, so types are compared by identity.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Literal

__all__ = [
    "ABSTRACT_FLOAT", "ABSTRACT_INT", "BF16", "BOOL", "F16", "F32", "I8", "I32", "SCALARS", "U8",
    "U32", "VOID", "Type", "array", "matrix", "matrix_unit", "scalar_of", "struct", "vector",
]  # fmt: skip

Kind = Literal["void", "abstract", "scalar", "vector", "matrix", "array", "struct", "matrix_unit"]


@dataclass(frozen=True, eq=False)
class Type:
    """One type.

    Args:
        kind: what sort of type it is.
        name: as WGSL writes it.
        element: type of a vector's components, a matrix's columns, an array's elements.
        count: components, columns or elements; 0 for an array sized by its buffer.
        members: names and types of a struct's members.
        rows: rows of a matrix unit's tile (``count`` are its columns).
        use: a matrix unit's operand: 0 left, 1 right, 2 result.
    """

    kind: Kind
    name: str
    element: Type | None = None
    count: int = 1
    members: tuple[tuple[str, Type], ...] = field(default=(), repr=False)
    rows: int = 0
    use: int = 0

    def __str__(self) -> str:
        return self.name

    @property
    def extent(self) -> tuple[str, int, int, int]:
        """What types share that differ in their components alone."""
        return self.kind, self.count, self.rows, self.use


VOID = Type("void", "no value")
BOOL = Type("scalar", "bool")
U32 = Type("scalar", "u32")
I32 = Type("scalar", "i32")
F32 = Type("scalar", "f32")
I8 = Type("scalar", "i8")
U8 = Type("scalar", "u8")
F16 = Type("scalar", "f16")
BF16 = Type("scalar", "bf16")
ABSTRACT_INT = Type("abstract", "an integer literal")
ABSTRACT_FLOAT = Type("abstract", "a decimal literal")

SCALARS = {t.name: t for t in (BOOL, U32, I32, F32)}
"""Types of values; i8, u8, f16 and bf16 are components of matrix units only."""


@cache
def vector(width: int, element: Type) -> Type:
    """A vector of 2, 3 or 4 components."""
    return Type("vector", f"vec{width}<{element}>", element, width)


@cache
def matrix(columns: int, rows: int) -> Type:
    """A matrix of f32, stored by columns."""
    return Type("matrix", f"mat{columns}x{rows}<f32>", vector(rows, F32), columns)


@cache
def array(element: Type, count: int) -> Type:
    """An array; of ``count`` 0, as long as its buffer."""
    size = f", {count}" if count else ""
    return Type("array", f"array<{element}{size}>", element, count)


@cache
def matrix_unit(use: int, element: Type, columns: int, rows: int) -> Type:
    """A tile that a subgroup holds together, an operand of the GPU's matrix units."""
    name = f"subgroup_matrix_{('left', 'right', 'result')[use]}<{element}, {columns}, {rows}>"
    return Type("matrix_unit", name, element, columns, rows=rows, use=use)


def struct(name: str, members: tuple[tuple[str, Type], ...]) -> Type:
    """A struct; two of the same name are two types."""
    return Type("struct", name, members=members)


def scalar_of(type_: Type) -> Type:
    """The component type of a vector or matrix of any sort, any other type itself."""
    while type_.kind in ("vector", "matrix", "matrix_unit"):
        assert type_.element is not None
        type_ = type_.element
    return type_
