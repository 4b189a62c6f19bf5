"""How a FlatBuffers table is declared: its name and its fields, in slot order, each with a kind."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

__all__ = [
    "BOOL",
    "BYTES",
    "FLOAT64",
    "INT8",
    "INT32",
    "INT64",
    "STRING",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "Kind",
    "Many",
    "One",
    "Scalar",
    "TableSchema",
    "Text",
    "Union",
    "Vector",
    "table",
]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number stored in the table itself; ``code`` is its :mod:`struct` format."""

    code: str
    default: int | float = 0

    @property
    def width(self) -> int:
        """Bytes of one number."""
        return struct.calcsize(f"<{self.code}")


@dataclass(frozen=True, slots=True)
class Text:
    """A UTF-8 string."""


@dataclass(frozen=True, slots=True)
class Vector:
    """A list of numbers."""

    item: Scalar


@dataclass(frozen=True, slots=True)
class One:
    """Another table."""

    schema: TableSchema


@dataclass(frozen=True, slots=True)
class Many:
    """A list of tables."""

    schema: TableSchema


@dataclass(frozen=True, slots=True)
class Union:
    """A table of one of several kinds: two slots, the tag (1 = first member) and the table."""

    members: tuple[TableSchema, ...]


Kind: TypeAlias = Scalar | Text | Vector | One | Many | Union


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The name of a table and, for each field, its first slot and its kind."""

    name: str
    fields: Mapping[str, tuple[int, Kind]]


def table(name: str, /, **kinds: Kind) -> TableSchema:
    """Declare a table by its fields in slot order."""
    fields: dict[str, tuple[int, Kind]] = {}
    slot = 0
    for field, kind in kinds.items():
        fields[field] = (slot, kind)
        slot += 2 if isinstance(kind, Union) else 1
    return TableSchema(name, MappingProxyType(fields))


INT8, INT32, INT64 = Scalar("b"), Scalar("i"), Scalar("q")
UINT8, UINT16, UINT32, UINT64 = Scalar("B"), Scalar("H"), Scalar("I"), Scalar("Q")
BOOL, FLOAT64 = Scalar("?", default=False), Scalar("d", default=0.0)
STRING, BYTES = Text(), Vector(UINT8)
