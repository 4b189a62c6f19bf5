"""Where a program's bytes come from: a path, bytes, or an open file."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeAlias

from nybble.errors import ContractError, ProgramFormatError, UnsupportedProgramError

__all__ = ["Source", "as_path", "named", "read_all", "read_source"]

Source: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes]


def read_source(source: Source) -> bytes | bytearray | memoryview:
    """The bytes of ``source``.

    Raises:
        ContractError: it is nothing that has bytes.
        OSError: the file cannot be read.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        # Constants are views of the data, so memory that its owner may write is copied.
        return source if memoryview(source).readonly else bytes(source)
    if isinstance(source, (str, os.PathLike)):
        if "\0" in str(source):
            raise ContractError(f"the path {os.fspath(source)!r} holds a null character")
        if Path(source).is_char_device():
            raise ContractError(f"expected a file, received the device {os.fspath(source)!r}")
        return Path(source).read_bytes()
    data = _read(source)
    if isinstance(data, (bytes, bytearray)):
        return data
    if isinstance(data, str):
        raise ContractError(
            "the program was opened as text, and it is bytes: open it with open(path, 'rb'), or "
            "pass the path itself"
        )
    raise ContractError(
        f"expected a path, bytes or a binary file object, received {type(source).__name__}"
    )


def _read(source: Any) -> Any:
    if isinstance(source, io.TextIOBase):
        # To read it would fail while it decodes, with an error about its encoding.
        return ""
    return source.read() if hasattr(source, "read") else None


def read_all(external: Iterable[Source]) -> list[bytes | bytearray | memoryview]:
    """The bytes of ``.ptd`` files.

    Raises:
        ContractError: ``external`` is no list, but one file, or of another kind.
        OSError: a file cannot be read.
    """
    one = isinstance(external, (str, bytes, bytearray, memoryview, os.PathLike, io.IOBase))
    if one or not isinstance(external, Iterable):
        kind = type(external).__name__
        received = f"one {kind}" if one else kind
        raise ContractError(f"external: expected a list of .ptd files, received {received}")
    return [read_source(item) for item in external]


@contextmanager
def named(source: Source) -> Iterator[None]:
    """Put the file's name before the sentence of an error about its content."""
    try:
        yield
    except (ProgramFormatError, UnsupportedProgramError) as error:
        if isinstance(source, (str, os.PathLike)):
            text = str(error.args[0]).removeprefix("the program: ")
            error.args = (f"{os.fspath(source)}: {text}", *error.args[1:])
        raise


def as_path(value: Any, argument: str) -> Path:
    """``value`` as a path; ``argument`` is its name.

    Raises:
        ContractError: it is neither text nor a path.
    """
    if not isinstance(value, (str, os.PathLike)):
        raise ContractError(f"{argument}: expected a path, received {type(value).__name__}")
    return Path(value)
