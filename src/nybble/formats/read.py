"""From the bytes of a ``.pte`` file, and the ``.ptd`` files that belong to it, to a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from nybble.errors import ProgramFormatError
from nybble.formats.flatbuffer import Table
from nybble.formats.headers import program_parts
from nybble.formats.method import read_method
from nybble.formats.program_file import DelegateGraph, MethodFile, ProgramFile
from nybble.formats.schema import PROGRAM
from nybble.formats.storage import NamedData, Segments, quoted
from nybble.formats.tensors import StoredData
from nybble.formats.vulkan import read_vulkan_blob

__all__ = ["Buffer", "read_program"]

Buffer: TypeAlias = bytes | bytearray | memoryview

_INLINE, _IN_SEGMENT = 0, 1


def read_program(data: Buffer, external: Sequence[Buffer] = ()) -> ProgramFile:
    """Read an ExecuTorch program.

    ``data`` is a whole ``.pte`` file and ``external`` the ``.ptd`` files exported with it, if
    any. Tensor contents in the result are views of these buffers, not copies. The bytes may come
    from anywhere: nothing in them is trusted.

    Raises :class:`~nybble.errors.ProgramFormatError` if the bytes are not a well-formed program,
    and :class:`TypeError` if an argument is not bytes-like.
    """
    source = "the program"
    buffer, segment_data = program_parts(_view(data, source), source)
    root = buffer.root(PROGRAM)
    segments = Segments(root.many("segments"), segment_data, source)
    named = NamedData()
    named.add(root.many("named_data"), segments)
    for index, extra in enumerate(external):
        label = f"external data file {index}"
        named.add_external(_view(extra, label), label)
    warnings: dict[str, None] = {}
    stored = StoredData.of(root, segments, named, warnings)
    blobs = _DelegateBlobs(root.many("backend_delegate_data"), segments, stored)
    methods = tuple(read_method(plan, stored, blobs.graph) for plan in root.many("execution_plan"))
    _check_names(methods, source)
    return ProgramFile(root.integer("version"), methods, tuple(warnings))


class _DelegateBlobs:
    """The blobs of all delegates; delegates that share one are read once."""

    def __init__(self, inline: Sequence[Table], segments: Segments, stored: StoredData) -> None:
        self._inline = inline
        self._segments = segments
        self._stored = stored
        self._graphs: dict[tuple[int, int], DelegateGraph] = {}

    def graph(self, reference: Table, where: str, wanted: bool) -> DelegateGraph | None:
        """The graph in the blob that ``reference`` points to; only checks that unless wanted."""
        place = reference.integer("location"), reference.integer("index")
        blob = self._blob(*place, where)
        if not wanted:
            return None
        if place not in self._graphs:
            self._graphs[place] = read_vulkan_blob(
                blob, self._stored.named, where, self._stored.warnings
            )
        return self._graphs[place]

    def _blob(self, location: int, index: int, where: str) -> memoryview:
        if location == _IN_SEGMENT:
            return self._segments.view(index, where)
        if location != _INLINE:
            raise ProgramFormatError(
                f"{where}: data location {location} is unknown, expected 0 (inline) or 1 (segment)."
            )
        if index >= len(self._inline):
            raise ProgramFormatError(
                f"{where}: its data is inline blob {index}, but the program has "
                f"{len(self._inline)} of them."
            )
        return self._inline[index].bytes("data")


def _view(data: Buffer, what: str) -> memoryview:
    try:
        view = memoryview(data)
    except TypeError:
        raise TypeError(
            f"{what}: expected the bytes of a file, received {type(data).__name__}."
        ) from None
    return view.cast("B") if view.c_contiguous else memoryview(view.tobytes())


def _check_names(methods: Sequence[MethodFile], source: str) -> None:
    names = [method.name for method in methods]
    if not names:
        raise ProgramFormatError(f"{source}: there is no method, expected at least one.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ProgramFormatError(f"{source}: there are two methods named {quoted(twice)}.")
