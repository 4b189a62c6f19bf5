"""The fixed headers of the three containers: where the FlatBuffers table and the data lie."""

from __future__ import annotations

import struct

from nybble.errors import ProgramFormatError
from nybble.formats.flatbuffer import FlatBuffer
from nybble.formats.identify import looks_like

__all__ = ["external_parts", "program_parts", "vulkan_parts"]

_COPY_AGAIN = "The file is truncated or damaged: copy or export it again."


def _field(code: str, data: memoryview, at: int) -> int:
    value: int = struct.unpack_from(f"<{code}", data, at)[0]
    return value


def _check_magic(data: memoryview, magic: bytes, source: str, kind: str) -> None:
    if len(data) < 12 or bytes(data[4:8]) != magic:
        raise ProgramFormatError(
            f"{source}: expected {kind}, which has {magic.decode()!r} at byte 4; "
            f"this looks like {looks_like(data)}."
        )


def _check_header(data: memoryview, declared: int, least: int, start: int, source: str) -> None:
    if declared < least or start + declared > len(data):
        raise ProgramFormatError(
            f"{source}: the header declares a length of {declared} bytes, expected {least} to "
            f"{len(data) - start}. {_COPY_AGAIN}"
        )


def _part(data: memoryview, start: int, size: int, least: int, what: str) -> memoryview:
    """``size`` bytes from ``start``, which must not begin before byte ``least``."""
    if start < least or start + size > len(data):
        raise ProgramFormatError(
            f"{what} lies at bytes {start} to {start + size}, expected within {least} to "
            f"{len(data)}. {_COPY_AGAIN}"
        )
    return data[start : start + size]


def program_parts(data: memoryview, source: str) -> tuple[FlatBuffer, memoryview]:
    """The table and the segment data (empty if there is none) of a ``.pte`` file."""
    _check_magic(data, b"ET12", source, "an ExecuTorch program (.pte)")
    if bytes(data[8:12]) != b"eh00":
        return FlatBuffer(data, source), data[:0]
    _check_header(data, 24, 24, 8, source)
    length = _field("I", data, 12)
    _check_header(data, length, 24, 8, source)
    table_size, base = _field("Q", data, 16), _field("Q", data, 24)
    table = _part(data, 0, table_size, 0, f"{source}: the program table")
    if base == 0:
        return FlatBuffer(table, source), data[:0]
    size = _field("Q", data, 32) if length >= 32 else max(len(data) - base, 0)
    segments = _part(data, base, size, table_size, f"{source}: the segment data")
    return FlatBuffer(table, source), segments


def external_parts(data: memoryview, source: str) -> tuple[FlatBuffer, memoryview]:
    """The table and the segment data of a ``.ptd`` file."""
    _check_magic(data, b"FT01", source, "an external data file (.ptd)")
    if bytes(data[8:12]) != b"FH01":
        raise ProgramFormatError(
            f"{source}: expected the header mark 'FH01' at byte 8, found "
            f"{bytes(data[8:12]).hex(' ')}. {_COPY_AGAIN}"
        )
    _check_header(data, 40, 40, 8, source)
    length = _field("I", data, 12)
    _check_header(data, length, 40, 8, source)
    start, size = _field("Q", data, 16), _field("Q", data, 24)
    _part(data, start, size, 8 + length, f"{source}: the table")
    base, data_size = _field("Q", data, 32), _field("Q", data, 40)
    segments = _part(data, base, data_size, start + size, f"{source}: the segment data")
    # Offsets in the table count from the first byte of the file, not of the table.
    return FlatBuffer(data[: start + size], source), segments


def vulkan_parts(blob: memoryview, source: str) -> tuple[FlatBuffer, memoryview]:
    """The graph table and the inline constant bytes of a Vulkan delegate's blob."""
    _check_magic(blob, b"VH00", source, "a Vulkan delegate")
    _check_header(blob, 30, 30, 0, source)
    length = _field("H", blob, 8)
    _check_header(blob, length, 30, 0, source)
    start, size = _field("I", blob, 10), _field("I", blob, 14)
    graph = _part(blob, start, size, length, f"{source}: the graph table")
    _check_magic(graph, b"VK00", source, "a Vulkan graph")
    base, data_size = _field("I", blob, 18), _field("Q", blob, 22)
    # A declared size of zero means the rest of the blob, as the exporter's own runtimes take it.
    data_size = data_size or max(len(blob) - base, 0)
    constants = _part(blob, base, data_size, start + size, f"{source}: the constant data")
    return FlatBuffer(graph, source), constants
