"""The blob of a Vulkan delegate (VH00 header, VK00 graph) as a :class:`DelegateGraph`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from nybble.errors import ProgramFormatError
from nybble.formats.elements import (
    VULKAN_DTYPE_UNSET,
    VULKAN_DTYPES,
    byte_count,
    checked_shape,
    dtype_named,
)
from nybble.formats.flatbuffer import Table
from nybble.formats.headers import vulkan_parts
from nybble.formats.program_file import (
    DelegateGraph,
    DelegateNode,
    DelegateTensor,
    DelegateValue,
    SymbolicInt,
    ValueList,
)
from nybble.formats.schema import VK_GRAPH
from nybble.formats.storage import NamedData, first_bytes, quoted, slice_of
from nybble.formats.values import PLAIN_VALUES, check_ids, numbered

__all__ = ["read_vulkan_blob"]

_STORED_BY_NAME = 2**64 - 1
# Integers of a list are literal here, unlike in the methods of a program.
_LISTS_AND_SYMBOLS: Mapping[str, Callable[[Table], DelegateValue]] = MappingProxyType(
    {
        "IntList": lambda row: row.integers("items"),
        "ValueList": lambda row: ValueList(row.integers("items")),
        "SymInt": lambda row: SymbolicInt(row.integer("value")),
    }
)


def read_vulkan_blob(
    blob: memoryview, named: NamedData, where: str, warnings: dict[str, None]
) -> DelegateGraph:
    """The graph in a delegate's blob.

    Constants are views of ``blob`` or of ``named``; oddities are added to ``warnings``. ``where``
    names the delegate in errors. Raises :class:`ProgramFormatError`.
    """
    buffer, inline = vulkan_parts(blob, where)
    root = buffer.root(VK_GRAPH)
    constants = _Constants(root.many("constants"), inline, named, warnings)
    values = tuple(
        _value(row.union("value", place), constants, place)
        for place, row in numbered(root.many("values"), f"{where}, value")
    )
    _check_value_lists(values, where)
    inputs, outputs = root.integers("input_ids"), root.integers("output_ids")
    check_ids(inputs, len(values), f"{where}, inputs", "values")
    check_ids(outputs, len(values), f"{where}, outputs", "values")
    calls = tuple(
        _call(row, len(values), place)
        for place, row in numbered(root.many("chain"), f"{where}, call")
    )
    return DelegateGraph(root.text("version"), calls, values, inputs, outputs)


class _Constants:
    """The stored constants of one delegate, found by index."""

    def __init__(
        self,
        rows: Sequence[Table],
        inline: memoryview,
        named: NamedData,
        warnings: dict[str, None],
    ) -> None:
        self._rows = rows
        self._inline = inline
        self._named = named
        self._warnings = warnings

    def find(self, index: int, size: int, where: str) -> tuple[memoryview, str | None]:
        """The first ``size`` bytes of constant ``index``, and its name if it has one."""
        check_ids([index], len(self._rows), f"{where}, constant", "constants")
        row = self._rows[index]
        offset, length = row.integer("offset"), row.integer("length")
        key = row.text("named_key")
        if offset != _STORED_BY_NAME:
            stored = slice_of(self._inline, offset, length, where, "the delegate's constant data")
            what = f"constant {index}"
        elif not key:
            raise ProgramFormatError(
                f"{where}: constant {index} is stored by name, but its name is empty."
            )
        else:
            stored = self._named.find(key, where)
            stored = slice_of(stored, 0, length, where, f"constant {quoted(key)}")
            what = f"constant {quoted(key)}"
        return first_bytes(stored, size, where, what, self._warnings), key or None


def _call(row: Table, value_count: int, where: str) -> DelegateNode:
    name, args = row.text("name"), row.integers("args")
    if not name:
        raise ProgramFormatError(f"{where}: the operator has no name.")
    check_ids(args, value_count, f"{where} ({quoted(name)}), arguments", "values")
    return DelegateNode(row.integer("node_id"), name, args)


def _value(row: Table, constants: _Constants, where: str) -> DelegateValue:
    kind = row.schema.name
    if kind == "VkTensor":
        return _tensor(row, constants, where)
    return _LISTS_AND_SYMBOLS[kind](row) if kind in _LISTS_AND_SYMBOLS else PLAIN_VALUES[kind](row)


def _tensor(row: Table, constants: _Constants, where: str) -> DelegateTensor:
    dtype = dtype_named(row.integer("datatype"), VULKAN_DTYPES, where)
    shape = checked_shape(row.integers("dims"), dtype, where)
    staging_code = row.integer("staging_datatype")
    staging_dtype = dtype
    if staging_code != VULKAN_DTYPE_UNSET:
        staging_dtype = dtype_named(staging_code, VULKAN_DTYPES, f"{where}, staging")
    index = row.integer("constant_id")
    data, key = None, None
    if index >= 0:
        data, key = constants.find(index, byte_count(dtype, shape), where)
    return DelegateTensor(dtype, shape, data, key, row.integer("mem_obj_id"), staging_dtype)


def _check_value_lists(values: Sequence[DelegateValue], where: str) -> None:
    for index, value in enumerate(values):
        if not isinstance(value, ValueList):
            continue
        place = f"{where}, value {index}"
        check_ids(value.items, len(values), place, "values")
        for item in value.items:
            # Lists in lists could form a cycle.
            if isinstance(values[item], ValueList | tuple):
                raise ProgramFormatError(
                    f"{place}: item {item} is itself a list; expected tensors or numbers."
                )
