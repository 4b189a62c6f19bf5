"""Compiled pipelines kept on disk, one file a driver; a damaged or foreign file is discarded."""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import sys
import tempfile
from pathlib import Path

__all__ = ["PipelineStore", "cache_folder"]

_MAGIC = b"NYVKPC01"
_HEADER_SIZE = 32  # of the driver's own header, whose first version is the only one
_HEADER_VERSION = 1


def cache_folder() -> Path:
    """Where this user's caches lie on this system; the null device for a user without a home."""
    named = {"win32": "LOCALAPPDATA", "darwin": ""}.get(sys.platform, "XDG_CACHE_HOME")
    inside = {"win32": "AppData/Local", "darwin": "Library/Caches"}.get(sys.platform, ".cache")
    folder = Path(os.environ.get(named, ""))
    # A relative one is invalid: the cache would lie wherever the process happens to be.
    if folder.is_absolute():
        return folder / "nybble"
    try:
        return Path.home() / inside / "nybble"
    except RuntimeError:
        return Path(os.devnull)


class PipelineStore:
    """The file of one driver.

    Args:
        folder: where the files lie; made when needed.
        identity: vendor, device and cache identifier, as a driver's own header has them.
        driver: the driver in words; another version is another file.
    """

    def __init__(self, folder: Path, identity: bytes, driver: str) -> None:
        self._identity = identity
        name = hashlib.sha256(identity + driver.encode()).hexdigest()[:24]
        self.path = folder / "vulkan" / f"{name}.bin"

    def load(self) -> bytes:
        """What the driver gave last time; nothing where that is absent, damaged or foreign."""
        try:
            stored = self.path.read_bytes()
        except OSError:
            return b""
        head = len(_MAGIC) + hashlib.sha256().digest_size
        data = stored[head:]
        expected = _MAGIC + hashlib.sha256(data).digest()
        return data if stored[:head] == expected and self._is_ours(data) else b""

    def save(self, data: bytes) -> bool:
        """Replace the file in one step, so that no reader sees half; whether that worked."""
        if not self._is_ours(data):
            return False
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=".", suffix=".tmp")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_MAGIC + hashlib.sha256(data).digest() + data)
                Path(name).replace(self.path)
            except BaseException:
                with contextlib.suppress(OSError):
                    Path(name).unlink()
                raise
        except OSError:
            # A full or read-only disk costs time at the next start, nothing else.
            return False
        return True

    def _is_ours(self, data: bytes) -> bool:
        if len(data) < _HEADER_SIZE:
            return False
        size, version = struct.unpack_from("<II", data)
        identity = data[8:_HEADER_SIZE]
        return (size, version, identity) == (_HEADER_SIZE, _HEADER_VERSION, self._identity)
