"""Tensors of a method: type, shape, order, and where their stored bytes lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from nybble.errors import ProgramFormatError
from nybble.formats.elements import PROGRAM_DTYPES, byte_count, checked_shape, dtype_named
from nybble.formats.flatbuffer import Table
from nybble.formats.program_file import Dynamism, FileTensor, TensorKind
from nybble.formats.storage import IndexedData, NamedData, Segments, first_bytes, quoted

__all__ = ["StoredData", "read_tensor"]

_DYNAMISMS: Mapping[int, Dynamism] = MappingProxyType({0: "static", 1: "bounded", 2: "unbounded"})
_IN_SEGMENT, _EXTERNAL = 0, 1


@dataclass(frozen=True, slots=True)
class StoredData:
    """All stored bytes that a program's tensors may refer to."""

    constants: IndexedData
    buffers: Sequence[Table]
    mutable: Sequence[IndexedData]
    named: NamedData
    warnings: dict[str, None]

    @classmethod
    def of(
        cls, root: Table, segments: Segments, named: NamedData, warnings: dict[str, None]
    ) -> StoredData:
        """The stored data of the program with this root table."""
        row = root.one("constant_segment")
        constants = (
            IndexedData(root.buffer.data[:0], (), "the constant segment")
            if row is None
            else IndexedData.of(row, segments, "the constant segment")
        )
        mutable = [
            IndexedData.of(row, segments, f"mutable data segment {index}")
            for index, row in enumerate(root.many("mutable_data_segments"))
        ]
        return cls(constants, root.many("constant_buffer"), mutable, named, warnings)

    def constant(self, index: int, size: int, where: str) -> memoryview:
        """The bytes of constant ``index``; old files keep them in the table, not in a segment."""
        if len(self.constants) or not self.buffers:
            return self.constants.bytes(index, size, where)
        if index >= len(self.buffers):
            raise ProgramFormatError(
                f"{where}: its data is constant buffer {index}, but the program has "
                f"{len(self.buffers)} constant buffers."
            )
        stored = self.buffers[index].bytes("storage")
        return first_bytes(stored, size, where, f"constant buffer {index}", self.warnings)

    def initial(self, segment: int, index: int, size: int, where: str) -> memoryview:
        """The initial bytes of a mutable tensor."""
        if segment >= len(self.mutable):
            raise ProgramFormatError(
                f"{where}: its initial data is in mutable data segment {segment}, but the "
                f"program has {len(self.mutable)} of them."
            )
        return self.mutable[segment].bytes(index, size, where)


def read_tensor(row: Table, stored: StoredData, where: str) -> FileTensor:
    """The tensor of a Tensor table; raises :class:`ProgramFormatError`."""
    dtype = dtype_named(row.integer("scalar_type"), PROGRAM_DTYPES, where)
    dynamism = _DYNAMISMS.get(row.integer("shape_dynamism"))
    if dynamism is None:
        raise ProgramFormatError(
            f"{where}: shape dynamism {row.integer('shape_dynamism')} is unknown, expected "
            "0 (static), 1 (bounded) or 2 (unbounded)."
        )
    shape = checked_shape(row.integers("sizes"), dtype, where, meaningful=dynamism != "unbounded")
    dim_order = _dim_order(row, len(shape), where)
    if row.integer("storage_offset") != 0:
        raise ProgramFormatError(
            f"{where}: the storage offset is {row.integer('storage_offset')}, expected 0."
        )
    extra = row.one("extra_tensor_info")
    name = extra.text("fully_qualified_name") if extra else ""
    kind = _kind(row, extra, where)
    data = _data(row, extra, kind, stored, (dtype, shape, name, where))
    return FileTensor(dtype, shape, dim_order, dynamism, kind, data, name or None)


def _dim_order(row: Table, rank: int, where: str) -> tuple[int, ...]:
    order = tuple(row.bytes("dim_order"))
    if len(order) != rank or sorted(order) != list(range(rank)):
        raise ProgramFormatError(
            f"{where}: the dimension order is {list(order[:16])}, expected each of 0 to "
            f"{rank - 1} once for a tensor of {rank} dimensions."
        )
    return order


def _kind(row: Table, extra: Table | None, where: str) -> TensorKind:
    location = extra.integer("location") if extra else _IN_SEGMENT
    if location not in (_IN_SEGMENT, _EXTERNAL):
        raise ProgramFormatError(
            f"{where}: data location {location} is unknown, expected 0 (segment) or 1 (external)."
        )
    if location == _EXTERNAL:
        return "external"
    stored, planned = row.integer("data_buffer_idx") > 0, row.one("allocation_info") is not None
    if stored:
        return "mutable" if planned else "constant"
    return "planned" if planned else "bound"


def _data(
    row: Table,
    extra: Table | None,
    kind: TensorKind,
    stored: StoredData,
    described: tuple[str, tuple[int, ...], str, str],
) -> memoryview | None:
    dtype, shape, name, where = described
    if kind in ("planned", "bound"):
        return None
    # Sizes of an unbounded tensor were not limited before; stored content needs real ones.
    size = byte_count(dtype, checked_shape(shape, dtype, where))
    index = row.integer("data_buffer_idx")
    if kind == "constant":
        return stored.constant(index, size, where)
    if kind == "mutable":
        segment = extra.integer("mutable_data_segments_idx") if extra else 0
        return stored.initial(segment, index, size, where)
    if not name:
        raise ProgramFormatError(f"{where}: the data is external, but the tensor has no name.")
    stored.named.check_layout(name, dtype, shape, where)
    found = stored.named.find(name, where)
    return first_bytes(found, size, where, f"external constant {quoted(name)}", stored.warnings)
