"""A writer of small program files, valid or hostile, driven by the reader's own table schemas.

(A test against ExecuTorch's reader guards the schemas themselves.)
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nybble.formats.schema import FLAT_TENSOR, PROGRAM, VK_GRAPH
from nybble.formats.tables import Many, One, Scalar, TableSchema, Text, Union, Vector

_FIXTURES = Path(__file__).parents[1] / "fixtures"


@dataclass(frozen=True)
class Shared:
    """A field whose target is written once for the whole buffer and shared under this name."""

    name: str
    content: Any


class TableWriter:
    """Appends tables to ``out``; fields as keyword dictionaries, unions as (member, fields)."""

    def __init__(self, head: bytes) -> None:
        self.out = bytearray(head)
        self._shared: dict[str, tuple[object, Any, list[int]]] = {}

    def root(self, schema: TableSchema, fields: Mapping[str, Any]) -> bytes:
        """The whole buffer, its first four bytes pointing at this table."""
        struct.pack_into("<I", self.out, 0, self._table(schema, fields))
        pending = list(self._shared)
        while pending:
            kind, content, places = self._shared.pop(pending.pop())
            target = self._target(kind, content)
            pending += self._shared.keys() - set(pending)
            for place in places:
                struct.pack_into("<I", self.out, place, target - place)
        return bytes(self.out)

    def _table(self, schema: TableSchema, fields: Mapping[str, Any]) -> int:
        slots: dict[int, bytes | tuple[object, Any]] = {}
        for name, content in fields.items():
            slot, kind = schema.fields[name]
            if isinstance(kind, Scalar):
                slots[slot] = struct.pack(f"<{kind.code}", content)
            elif isinstance(kind, Union):
                tag = [member.name for member in kind.members].index(content[0])
                slots[slot] = struct.pack("<B", tag + 1)
                slots[slot + 1] = (One(kind.members[tag]), content[1])
            else:
                slots[slot] = (kind, content)
        count = max(slots, default=-1) + 1
        body, offsets, children = bytearray(4), [0] * count, []
        for slot, stored in slots.items():
            offsets[slot] = len(body)
            if isinstance(stored, tuple):
                children.append((len(body), *stored))
            body += bytes(4) if isinstance(stored, tuple) else stored
        directory = len(self.out)
        self.out += struct.pack(f"<{count + 2}H", 4 + 2 * count, len(body), *offsets)
        start = len(self.out)
        struct.pack_into("<i", body, 0, start - directory)
        self.out += body
        for offset, target, content in children:
            self._point(start + offset, target, content)
        return start

    def _point(self, at: int, kind: object, content: Any) -> None:
        if isinstance(content, Shared):
            # Offsets lead forward only: a shared target is written after all that point to it.
            self._shared.setdefault(content.name, (kind, content.content, []))[2].append(at)
        else:
            target = self._target(kind, content)
            struct.pack_into("<I", self.out, at, target - at)

    def _target(self, kind: object, content: Any) -> int:
        if isinstance(kind, One):
            return self._table(kind.schema, content)
        start = len(self.out)
        if isinstance(kind, Text):
            encoded = content.encode() if isinstance(content, str) else content
            self.out += struct.pack("<I", len(encoded)) + encoded + b"\0"
        elif isinstance(kind, Vector):
            self.out += struct.pack(f"<I{len(content)}{kind.item.code}", len(content), *content)
        elif isinstance(kind, Many):
            self.out += struct.pack("<I", len(content)) + bytes(4 * len(content))
            for index, item in enumerate(content):
                self._point(start + 4 + 4 * index, One(kind.schema), item)
        return start


@dataclass(frozen=True)
class Files:
    """Makes program files, external data files and delegate blobs; knows the real files."""

    fixtures: Path = _FIXTURES

    def real(self) -> dict[str, bytes]:
        """The exported programs that come with the tests, by name."""
        found = {path.name: path.read_bytes() for path in sorted(self.fixtures.glob("*.pte"))}
        assert found, "tests/fixtures has no .pte file; make them with tools/make_fixtures.py"
        return found

    def external(self) -> list[bytes]:
        """The external data files that come with ``external_constants.pte``."""
        return [path.read_bytes() for path in sorted(self.fixtures.glob("external_constants*.ptd"))]

    def pte(self, root: Mapping[str, Any], segments: Sequence[bytes] = ()) -> bytes:
        """A ``.pte`` file with the given root fields; segments are listed in the table for it."""
        starts = [sum(map(len, segments[:index])) for index in range(len(segments))]
        rows = [
            {"offset": start, "size": len(segment)}
            for start, segment in zip(starts, segments, strict=True)
        ]
        head = bytes(4) + b"ET12" + b"eh00" + struct.pack("<I", 32) + bytes(24)
        table = bytearray(TableWriter(head).root(PROGRAM, {"segments": rows, **root}))
        data = b"".join(segments)
        struct.pack_into("<QQQ", table, 16, len(table), len(table) if data else 0, len(data))
        return bytes(table) + data

    def program(
        self, plan: Mapping[str, Any], segment_bytes: Sequence[bytes] = (), **root: Any
    ) -> bytes:
        """A ``.pte`` file with one method; what ``plan`` leaves out is empty."""
        whole = {"name": "forward", "chains": [{"instructions": []}], **plan}
        return self.pte({"execution_plan": [whole], **root}, segment_bytes)

    def value(self, kind: str, fields: Mapping[str, Any], **root: Any) -> bytes:
        """A ``.pte`` file whose only method has this one value."""
        return self.program({"values": [{"value": (kind, fields)}]}, **root)

    def instruction(self, kind: str, **fields: Any) -> bytes:
        """A ``.pte`` file of two values, one operator and this one instruction."""
        plan = {
            "values": [{"value": ("Int", {"value": 7})}, {"value": ("Null", {})}],
            "operators": [{"name": "aten::sum", "overload": "IntList_out"}],
            "chains": [{"instructions": [{"arguments": (kind, fields)}]}],
        }
        return self.program(plan)

    def blob(self, graph: Mapping[str, Any], inline: bytes = b"") -> bytes:
        """The blob of a Vulkan delegate."""
        table = TableWriter(bytes(4) + b"VK00").root(VK_GRAPH, {"version": "0", **graph})
        padding = -len(table) % 16
        offset = 32 + len(table) + padding
        head = struct.pack("<4x4sHIIIQ2x", b"VH00", 30, 32, len(table), offset, len(inline))
        return head + table + bytes(padding) + inline

    def delegated(self, blob: bytes, segments: Sequence[bytes] = (), **root: Any) -> bytes:
        """A ``.pte`` file with one Vulkan delegate; its blob is segment 0."""
        delegate = {"id": "VulkanBackend", "processed": {"location": 1, "index": 0}}
        return self.program({"delegates": [delegate]}, [blob, *segments], **root)

    def graph(self, values: Sequence[tuple[str, Mapping[str, Any]]], **graph: Any) -> bytes:
        """A ``.pte`` file with one Vulkan delegate of these values."""
        inline = graph.pop("inline", b"")
        rows = [{"value": value} for value in values]
        return self.delegated(self.blob({"values": rows, **graph}, inline))

    def ptd(self, named: Sequence[Mapping[str, Any]], segments: Sequence[bytes]) -> bytes:
        """A ``.ptd`` file."""
        starts = [sum(map(len, segments[:index])) for index in range(len(segments))]
        rows = [
            {"offset": start, "size": len(segment)}
            for start, segment in zip(starts, segments, strict=True)
        ]
        head = bytes(4) + b"FT01" + b"FH01" + struct.pack("<I", 40) + bytes(32)
        root = {"segments": rows, "named_data": named}
        table = bytearray(TableWriter(head).root(FLAT_TENSOR, root))
        data = b"".join(segments)
        struct.pack_into("<QQQQ", table, 16, 48, len(table) - 48, len(table), len(data))
        return bytes(table) + data


@pytest.fixture(scope="session")
def files() -> Files:
    """The maker of files."""
    return Files()


@pytest.fixture(scope="session")
def shared() -> type[Shared]:
    """Marks a field's target as shared."""
    return Shared
