"""Files that are whole or not there: written beside, flushed, and renamed into place."""

from __future__ import annotations

import glob
import json
import math
import os
import struct
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from nybble.contract import Array
from nybble.errors import NybbleError, ProgramFormatError

__all__ = [
    "read_metadata", "read_safetensors", "remove_leftovers", "safetensors_bytes", "write_whole",
]  # fmt: skip

_TYPES = {"F32": np.float32, "I32": np.int32, "U8": np.uint8, "I64": np.int64}
_NAMES = {np.dtype(dtype): name for name, dtype in _TYPES.items()}
_MOST_HEADER = 100 << 20


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file so that a reader, or a restart, sees the old content or the new, never a part.

    Raises:
        NybbleError: it cannot be written, for example on a full disk; the old file is as it was.
    """
    target = Path(path)
    temporary = ""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
        Path(temporary).chmod(mode)
        Path(temporary).replace(target)
        temporary = ""
        _flush_folder(target.parent)
    except OSError as error:
        raise NybbleError(
            f"{target} cannot be written ({error.strerror or error}); what was there before is "
            "untouched. Free some space or choose another folder, and save again"
        ) from error
    finally:
        if temporary:
            Path(temporary).unlink(missing_ok=True)


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove the parts that killed writers of a file left beside it.

    Only for files with one writer: another's write in progress fails, as on a full disk.
    """
    target = Path(path)
    for part in target.parent.glob(f".{glob.escape(target.name)}.*"):
        part.unlink(missing_ok=True)


def _flush_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def safetensors_bytes(tensors: Mapping[str, Array], metadata: Mapping[str, str]) -> bytes:
    """A safetensors file: the length of a JSON header, the header, the tensors' bytes.

    Raises:
        NybbleError: names and metadata take more than safetensors' readers accept.
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    parts = []
    at = 0
    for name, tensor in tensors.items():
        raw = np.ascontiguousarray(tensor).tobytes()
        header[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [at, at + len(raw)],
        }
        parts.append(raw)
        at += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _MOST_HEADER:
        raise NybbleError(
            f"names and metadata take {len(text)} bytes; a safetensors file may have {_MOST_HEADER}"
        )
    return b"".join((struct.pack("<Q", len(text)), text, *parts))


def read_safetensors(
    path: str | os.PathLike[str],
) -> tuple[dict[str, Array], dict[str, str]]:
    """The tensors and the metadata of a safetensors file.

    Raises:
        ProgramFormatError: the file is not a whole safetensors file.
        NybbleError: it cannot be read.
    """
    with _opened(path) as file:
        header, metadata = _header(file)
        return _tensors(header, memoryview(file.read())), metadata


def read_metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """The metadata of a safetensors file, without reading its tensors.

    Raises:
        ProgramFormatError: the file does not begin as a safetensors file.
        NybbleError: it cannot be read.
    """
    with _opened(path) as file:
        return _header(file)[1]


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    try:
        with Path(path).open("rb") as file:
            yield file
    except OSError as error:
        raise NybbleError(f"{path} cannot be read ({error.strerror or error})") from error
    except (
        ValueError, KeyError, TypeError, struct.error, AttributeError, RecursionError,
    ) as error:  # fmt: skip
        raise ProgramFormatError(
            f"{path} is not a whole safetensors file ({error}); use another checkpoint"
        ) from error


def _header(file: BinaryIO) -> tuple[dict[str, Any], dict[str, str]]:
    """The rows of the tensors, and the metadata."""
    (length,) = struct.unpack("<Q", file.read(8))
    if length > min(os.fstat(file.fileno()).st_size - 8, _MOST_HEADER):
        raise ValueError(f"its header of {length} bytes exceeds the file")
    header = json.loads(file.read(length))
    metadata = header.pop("__metadata__", {})
    return header, {str(key): str(value) for key, value in metadata.items()}


def _tensors(header: Mapping[str, Any], body: memoryview) -> dict[str, Array]:
    tensors = {}
    for name, row in header.items():
        start, end = row["data_offsets"]
        dtype, shape = np.dtype(_TYPES[row["dtype"]]), tuple(row["shape"])
        if not 0 <= start <= end <= len(body) or math.prod(shape) * dtype.itemsize != end - start:
            raise ValueError(f"tensor {name!r} lies outside the file")
        tensors[name] = np.frombuffer(body[start:end], dtype).reshape(shape).copy()
    return tensors
