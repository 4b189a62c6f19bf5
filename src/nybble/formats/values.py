"""What the readers of methods and of delegates share: plain values, checks of ids."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from nybble.errors import ProgramFormatError
from nybble.formats.flatbuffer import Table

__all__ = ["PLAIN_VALUES", "check_ids", "numbered"]

PlainValue: TypeAlias = bool | int | float | str | tuple[float, ...] | tuple[bool, ...] | None

#: How to read the values that mean the same in methods and in delegates, by table name.
PLAIN_VALUES: Mapping[str, Callable[[Table], PlainValue]] = MappingProxyType(
    {
        "Null": lambda _row: None,
        "Int": lambda row: row.integer("value"),
        "Bool": lambda row: row.flag("value"),
        "Double": lambda row: row.real("value"),
        "String": lambda row: row.text("value"),
        "DoubleList": lambda row: row.reals("items"),
        "BoolList": lambda row: row.flags("items"),
    }
)


def check_ids(ids: Sequence[int], count: int, where: str, what: str) -> None:
    """Refuse ids outside 0 to ``count - 1``; ``what`` says what they are ids of, in the plural."""
    for position, identifier in enumerate(ids):
        if not 0 <= identifier < count:
            raise ProgramFormatError(
                f"{where}: item {position} is {identifier}, but there are {count} {what}."
            )


def numbered(rows: Sequence[Table], what: str) -> Iterator[tuple[str, Table]]:
    """Each row with its name for errors, as in "call 3"."""
    return ((f"{what} {index}", row) for index, row in enumerate(rows))
