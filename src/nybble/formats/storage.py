"""Where stored bytes are found: segments, constants by index, and constants by name."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from nybble.errors import ProgramFormatError
from nybble.formats.elements import PROGRAM_DTYPES, checked_shape, dtype_named
from nybble.formats.flatbuffer import Table
from nybble.formats.headers import external_parts
from nybble.formats.schema import FLAT_TENSOR

__all__ = ["IndexedData", "NamedData", "Segments", "first_bytes", "quoted", "slice_of"]

_SHA256_KEY = re.compile("[0-9a-f]{64}")


def quoted(text: str) -> str:
    """``text`` from an untrusted file, escaped and cut to a length fit for a message."""
    return repr(text if len(text) <= 80 else f"{text[:77]}...")


def slice_of(data: memoryview, start: int, size: int, where: str, what: str) -> memoryview:
    """``size`` bytes of ``data`` from ``start``, or an error that ``what`` is too short."""
    if start + size > len(data):
        raise ProgramFormatError(
            f"{where}: its {size} bytes lie at bytes {start} to {start + size} of {what}, "
            f"which has {len(data)} bytes."
        )
    return data[start : start + size]


def first_bytes(
    data: memoryview, size: int, where: str, what: str, warnings: dict[str, None]
) -> memoryview:
    """The first ``size`` bytes of ``data``; a longer ``data`` is put up with, with a warning."""
    if len(data) > size:
        warnings[
            f"{where}: {what} has {len(data)} bytes but the tensor takes {size}; the first {size} "
            "are used. If a slice of a larger tensor was exported, clone it and export again."
        ] = None
    return slice_of(data, 0, size, where, what)


class Segments:
    """The segments of one file, as views of it."""

    def __init__(self, rows: Sequence[Table], data: memoryview, source: str) -> None:
        spans = [(row.integer("offset"), row.integer("size")) for row in rows]
        self._views = [
            slice_of(data, start, size, f"{source}: segment {index}", "the segment data")
            for index, (start, size) in enumerate(spans)
        ]
        total = sum(size for _, size in spans)
        # Segments that overlap would let a small file stand for any amount of work.
        if total > len(data):
            raise ProgramFormatError(
                f"{source}: the segments take {total} bytes together, but the segment data has "
                f"{len(data)} bytes: segments overlap."
            )

    def view(self, index: int, where: str) -> memoryview:
        """Segment ``index``; ``where`` names what asks for it."""
        if index >= len(self._views):
            raise ProgramFormatError(
                f"{where}: its data is in segment {index}, but the file has "
                f"{len(self._views)} segments."
            )
        return self._views[index]


class IndexedData:
    """Constants of one segment (or of the inline buffers of old files), found by index."""

    def __init__(self, data: memoryview, offsets: tuple[int, ...], what: str) -> None:
        self._data = data
        self._offsets = offsets
        self._what = what

    @classmethod
    def of(cls, row: Table, segments: Segments, what: str) -> IndexedData:
        """Constants listed by a SubsegmentOffsets table."""
        offsets = row.integers("offsets")
        if not offsets:
            return cls(row.buffer.data[:0], (), what)
        return cls(segments.view(row.integer("segment_index"), what), offsets, what)

    def __len__(self) -> int:
        return len(self._offsets)

    def bytes(self, index: int, size: int, where: str) -> memoryview:
        """The first ``size`` bytes of entry ``index``."""
        if index >= len(self._offsets):
            raise ProgramFormatError(
                f"{where}: its data is entry {index} of {self._what}, which has "
                f"{len(self._offsets)} entries."
            )
        return slice_of(self._data, self._offsets[index], size, where, self._what)


@dataclass(frozen=True, slots=True)
class _Entry:
    data: memoryview
    origin: tuple[str, int]
    dtype: str | None
    shape: tuple[int, ...] | None


class NamedData:
    """Constants found by name, in the program and in the external files given with it."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._sources: list[str] = []
        self._digests: dict[tuple[str, int], str] = {}

    def add_external(self, data: memoryview, source: str) -> None:
        """Take in all constants of a ``.ptd`` file."""
        buffer, segment_data = external_parts(data, source)
        root = buffer.root(FLAT_TENSOR)
        self.add(root.many("named_data"), Segments(root.many("segments"), segment_data, source))

    def add(self, rows: Sequence[Table], segments: Segments) -> None:
        """Take in the constants of one file; a name may not be given twice."""
        for row in rows:
            key, index, source = row.text("key"), row.integer("segment_index"), row.buffer.source
            where = f"{source}: constant {quoted(key)}"
            layout = row.one("tensor_layout") if "tensor_layout" in row.schema.fields else None
            dtype, shape = (None, None) if layout is None else _layout(layout, where)
            entry = _Entry(segments.view(index, where), (source, index), dtype, shape)
            known = self._entries.setdefault(key, entry)
            # A name that is a digest stands for its bytes: files may repeat it.
            if known is not entry and not _SHA256_KEY.fullmatch(key):
                raise ProgramFormatError(
                    f"{where} is already given by {known.origin[0]}; names must be unique."
                )

    def find(self, key: str, where: str) -> memoryview:
        """All bytes of constant ``key``, checked against the digest that is its name, if it is."""
        entry = self._entry(key, where)
        if _SHA256_KEY.fullmatch(key):
            digest = self._digests.get(entry.origin)
            if digest is None:
                digest = hashlib.sha256(entry.data).hexdigest()
                self._digests[entry.origin] = digest
            if digest != key:
                raise ProgramFormatError(
                    f"{where}: the data of constant {key} in {entry.origin[0]} has SHA-256 "
                    f"{digest}, expected the constant's name. The file is damaged: copy or "
                    "export it again."
                )
        return entry.data

    def check_layout(self, key: str, dtype: str, shape: tuple[int, ...], where: str) -> None:
        """Refuse a constant whose file says it has another element type or shape."""
        entry = self._entry(key, where)
        if entry.dtype is not None and (entry.dtype, entry.shape) != (dtype, shape):
            raise ProgramFormatError(
                f"{where}: constant {quoted(key)} is declared as {dtype} of shape {list(shape)} "
                f"but {entry.origin[0]} holds {entry.dtype} of shape {list(entry.shape or ())}. "
                "Pass the .ptd file that was exported with this program."
            )

    def _entry(self, key: str, where: str) -> _Entry:
        if key not in self._entries:
            raise ProgramFormatError(
                f"{where}: constant {quoted(key)} is neither in the program nor in the external "
                "data given. Pass the .ptd files that were exported with this program."
            )
        return self._entries[key]


def _layout(layout: Table, where: str) -> tuple[str, tuple[int, ...]]:
    dtype = dtype_named(layout.integer("scalar_type"), PROGRAM_DTYPES, where)
    return dtype, checked_shape(layout.integers("sizes"), dtype, where)
