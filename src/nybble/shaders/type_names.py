"""Parses the names of types."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .context import Context
from .types import (
    BF16,
    F16,
    F32,
    I8,
    I32,
    SCALARS,
    U8,
    U32,
    Type,
    array,
    matrix,
    matrix_unit,
    vector,
)

if TYPE_CHECKING:
    from .module import Module

__all__ = ["begins_type", "type_name"]

_SHORT = {"f": F32, "i": I32, "u": U32}
_VECTOR = re.compile(r"vec([234])([fiu]?)")
_MATRIX = re.compile(r"mat([234])x([234])(f?)")
_UNITS = {f"subgroup_matrix_{use}": i for i, use in enumerate(("left", "right", "result"))}
_COMPONENTS = {t.name: t for t in (I8, U8, F16, BF16, F32, I32, U32)}
_SUM_LEVEL = 8


def begins_type(module: Module, name: str) -> bool:
    """Whether a name stands for a type."""
    return (
        name in SCALARS
        or name in module.types
        or name == "array"
        or name in _UNITS
        or _VECTOR.fullmatch(name) is not None
        or _MATRIX.fullmatch(name) is not None
    )


def type_name(c: Context, *, inferred: bool = False) -> Type:
    """Parse a type.

    With ``inferred`` a vector's, matrix's or array's name may stand alone, as in ``vec4(x)``: its
    type is then one without an element, to be completed by :func:`construct`.
    """
    name = c.cursor.name()
    if name in c.module.types:
        return c.module.types[name]
    if name in SCALARS:
        return SCALARS[name]
    if name in _UNITS:
        return _matrix_unit(c, _UNITS[name])
    if name == "array":
        if inferred and c.cursor.now == "(":
            return Type("array", "array", None, 0)
        return _array(c)
    found = _VECTOR.fullmatch(name)
    if found:
        width = int(found[1])
        if found[2]:
            return vector(width, _SHORT[found[2]])
        if inferred and c.cursor.now == "(":
            return Type("vector", name, None, width)
        return vector(width, _element(c))
    found = _MATRIX.fullmatch(name)
    if found:
        made = matrix(int(found[1]), int(found[2]))
        if not found[3] and not (inferred and c.cursor.now == "(") and _element(c) is not F32:
            raise c.error("matrices are of f32")
        return made
    raise c.error(f"'{name}' is no type that is known here")


def _element(c: Context) -> Type:
    c.cursor.expect("<")
    name = c.cursor.name()
    c.cursor.expect(">")
    if name not in SCALARS:
        raise c.error(f"'{name}' is no component type that is known here")
    return SCALARS[name]


def _array(c: Context) -> Type:
    from .expressions import constant_size  # an array's length is an expression

    c.cursor.expect("<")
    element = type_name(c)
    count = constant_size(c, _SUM_LEVEL) if c.cursor.accept(",") else 0
    c.cursor.accept(",")
    c.cursor.expect(">")
    return array(element, count)


def _matrix_unit(c: Context, use: int) -> Type:
    from .expressions import constant_size

    c.cursor.expect("<")
    name = c.cursor.name()
    if name not in _COMPONENTS:
        raise c.error(f"'{name}' is no component of a matrix unit")
    c.cursor.expect(",")
    columns = constant_size(c, _SUM_LEVEL)
    c.cursor.expect(",")
    rows = constant_size(c, _SUM_LEVEL)
    c.cursor.expect(">")
    return matrix_unit(use, _COMPONENTS[name], columns, rows)
