"""Reads FlatBuffers tables from untrusted bytes: every offset is checked, total work is bounded.

A :class:`Table` is a view of one declared table (see ``tables.py``) and decodes a field only when
asked, so nothing here recurses.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TypeVar

from nybble.errors import ProgramFormatError
from nybble.formats.tables import (
    INT32,
    UINT8,
    UINT16,
    UINT32,
    Many,
    One,
    Scalar,
    TableSchema,
    Text,
    Union,
    Vector,
)

__all__ = ["FlatBuffer", "Table"]

# An honest buffer decodes to at most one item (number, character) per byte and one table per eight;
# one whose tables all point at the same long list decodes to many more.
_ITEMS_PER_TABLE = 8
_ITEMS_PER_BYTE = 4
_ITEMS_AT_MOST = 2**22

_AnyKind = TypeVar("_AnyKind", Scalar, Text, Vector, One, Many, Union)


class FlatBuffer:
    """One FlatBuffers buffer; ``source`` says in errors which part of which file it is."""

    __slots__ = ("_items_left", "data", "source")

    def __init__(self, data: memoryview, source: str) -> None:
        self.data = data
        self.source = source
        self._items_left = min(_ITEMS_PER_BYTE * len(data) + 1024, _ITEMS_AT_MOST)

    def root(self, schema: TableSchema) -> Table:
        """The table that the first four bytes point to."""
        return self.open(schema, self.target(0, f"the root table {schema.name}"))

    def error(self, what: str, problem: str) -> ProgramFormatError:
        """An error that names this buffer, the thing in it, and what is wrong with it."""
        return ProgramFormatError(
            f"{self.source}: {what} {problem}. The file is damaged: copy or export it again."
        )

    def span(self, start: int, size: int, what: str) -> memoryview:
        """Bytes ``start`` to ``start + size``, which must lie inside the buffer."""
        if start < 0 or start + size > len(self.data):
            raise self.error(
                what,
                f"lies at bytes {start} to {start + size}, expected within 0 to {len(self.data)}",
            )
        return self.data[start : start + size]

    def integer(self, scalar: Scalar, at: int, what: str) -> int:
        """The integer at byte ``at``."""
        value: int = struct.unpack(f"<{scalar.code}", self.span(at, scalar.width, what))[0]
        return value

    def target(self, at: int, what: str) -> int:
        """Where the forward offset at byte ``at`` leads."""
        return at + self.integer(UINT32, at, what)

    def items(self, at: int, width: int, what: str) -> tuple[int, int]:
        """First byte and count of the list that byte ``at`` points to, all of it in the buffer."""
        start = self.target(at, what) + 4
        count = self.integer(UINT32, start - 4, what)
        self.span(start, count * width, f"{what}, a list of {count} items of {width} bytes,")
        return start, count

    def charge(self, items: int, what: str) -> None:
        """Count decoded items: shared lists could otherwise multiply the work without bound."""
        self._items_left -= items
        if self._items_left < 0:
            raise self.error(
                what, f"is one table or list too many for a buffer of {len(self.data)} bytes"
            )

    def open(self, schema: TableSchema, at: int) -> Table:
        """The table at byte ``at``; its body and its directory of fields lie in the buffer."""
        what = f"table {schema.name} at byte {at}"
        self.charge(_ITEMS_PER_TABLE, what)
        directory = at - self.integer(INT32, at, what)
        size = self.integer(UINT16, directory, f"the field directory of {what}")
        extent = self.integer(UINT16, directory + 2, f"the field directory of {what}")
        if size < 4 or extent < 4:
            raise self.error(
                what, f"has a directory of {size} and a body of {extent} bytes, expected 4 or more"
            )
        self.span(directory, size, f"the field directory of {what}")
        self.span(at, extent, what)
        return Table(self, schema, at, directory, size, extent)


@dataclass(frozen=True, slots=True)
class Table:
    """A view of one table; an absent field reads as its default, ``None`` or an empty list."""

    buffer: FlatBuffer
    schema: TableSchema
    at: int
    directory: int
    directory_size: int
    extent: int

    def integer(self, field: str) -> int:
        """An integer field."""
        return int(self._number(field))

    def real(self, field: str) -> float:
        """A floating-point field."""
        return float(self._number(field))

    def flag(self, field: str) -> bool:
        """A boolean field; any byte but zero is true."""
        return bool(self._number(field))

    def integers(self, field: str) -> tuple[int, ...]:
        """A list of integers."""
        return tuple(self._numbers(field))

    def reals(self, field: str) -> tuple[float, ...]:
        """A list of floating-point numbers."""
        return tuple(self._numbers(field))

    def flags(self, field: str) -> tuple[bool, ...]:
        """A list of booleans; any byte but zero is true."""
        return tuple(map(bool, self._numbers(field)))

    def bytes(self, field: str) -> memoryview:
        """A list of bytes, not copied."""
        self._kind(field, Vector)
        at, what = self._place(field, 4)
        if at is None:
            return self.buffer.data[:0]
        start, count = self.buffer.items(at, UINT8.width, what)
        return self.buffer.span(start, count, what)

    def text(self, field: str) -> str:
        """A string; absent reads as the empty string."""
        self._kind(field, Text)
        at, what = self._place(field, 4)
        if at is None:
            return ""
        start, count = self.buffer.items(at, UINT8.width, what)
        self.buffer.charge(count, what)
        try:
            return str(self.buffer.span(start, count, what), "utf-8")
        except UnicodeDecodeError as error:
            raise self.buffer.error(what, f"is not UTF-8 text ({error.reason})") from None

    def one(self, field: str) -> Table | None:
        """A table, ``None`` when absent."""
        schema = self._kind(field, One).schema
        at, what = self._place(field, 4)
        return None if at is None else self.buffer.open(schema, self.buffer.target(at, what))

    def many(self, field: str) -> list[Table]:
        """A list of tables."""
        schema = self._kind(field, Many).schema
        at, what = self._place(field, 4)
        if at is None:
            return []
        start, count = self.buffer.items(at, 4, what)
        self.buffer.charge(count, what)
        places = range(start, start + 4 * count, 4)
        return [self.buffer.open(schema, self.buffer.target(place, what)) for place in places]

    def union(self, field: str, where: str) -> Table:
        """The table of a union field; ``where`` names what must have one of its kinds."""
        members = self._kind(field, Union).members
        tag_at, what = self._place(field, UINT8.width)
        tag = 0 if tag_at is None else self.buffer.integer(UINT8, tag_at, what)
        at, what = self._place(field, 4, slots_after=1)
        if not 1 <= tag <= len(members) or at is None:
            raise ProgramFormatError(
                f"{where}: it is of unknown kind {tag}, expected one of "
                f"{', '.join(f'{known} ({kind.name})' for known, kind in enumerate(members, 1))}."
            )
        return self.buffer.open(members[tag - 1], self.buffer.target(at, what))

    def _kind(self, field: str, kind: type[_AnyKind]) -> _AnyKind:
        declared = self.schema.fields[field][1]
        if not isinstance(declared, kind):
            raise TypeError(f"{self.schema.name}.{field} is declared as {declared}, not {kind}.")
        return declared

    def _place(self, field: str, width: int, slots_after: int = 0) -> tuple[int | None, str]:
        """Byte of a field of ``width`` bytes (None when absent), and its name for errors."""
        what = f"field {field} of table {self.schema.name} at byte {self.at}"
        entry = 4 + 2 * (self.schema.fields[field][0] + slots_after)
        if entry + 2 > self.directory_size:
            return None, what
        offset = self.buffer.integer(UINT16, self.directory + entry, what)
        if offset == 0:
            return None, what
        if offset < 4 or offset + width > self.extent:
            raise self.buffer.error(
                what, f"lies {offset} bytes into its table, expected 4 to {self.extent - width}"
            )
        return self.at + offset, what

    def _number(self, field: str) -> int | float:
        kind = self._kind(field, Scalar)
        at, what = self._place(field, kind.width)
        if at is None:
            return kind.default
        stored = self.buffer.span(at, kind.width, what)
        value: int | float = struct.unpack(f"<{kind.code}", stored)[0]
        return value

    def _numbers(self, field: str) -> tuple[int, ...]:
        """Numbers of a list; typed as integers, the narrowest of the three kinds."""
        item = self._kind(field, Vector).item
        at, what = self._place(field, 4)
        if at is None:
            return ()
        start, count = self.buffer.items(at, item.width, what)
        self.buffer.charge(count, what)
        return struct.unpack(
            f"<{count}{item.code}", self.buffer.span(start, count * item.width, what)
        )
