"""Copies between the host and a device's memory, outside of runs: constants, states, traces."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from nybble.contract.layouts import Words

from .commands import CommandPool
from .memory import Allocation, Bytes

if TYPE_CHECKING:
    from .device import VulkanDevice

__all__ = ["Transfer"]

_ROOM = 16 << 20


class Transfer:
    """Copies that the host waits for; memory that the host sees is read and written in place.

    Args:
        device: whose memory is meant.
        room: bytes of the host's side; larger copies go in pieces.
    """

    def __init__(self, device: VulkanDevice, room: int = _ROOM) -> None:
        self._device = device
        self._room = room
        self._pool: CommandPool | None = None
        self._lock = threading.Lock()

    def clear(self, targets: Iterable[Allocation]) -> None:
        """Fill with zeros."""
        self._device.finish()
        hidden = []
        for target in targets:
            if target.view is None:
                hidden.append(target)
            else:
                target.view[:] = 0
        if hidden:
            with self._lock:
                recorder = self._commands().record()
                for target in hidden:
                    recorder.clear(target)
                self._run(recorder.end())

    def write(self, items: Iterable[tuple[Allocation, Words]]) -> None:
        """Put words at the beginning of each allocation."""
        self._device.finish()
        hidden: list[tuple[Allocation, Bytes]] = []
        for target, words in items:
            data = np.ascontiguousarray(words).reshape(-1).view(np.uint8)
            if target.view is None:
                hidden.append((target, data))
            else:
                target.view[: data.size] = data
        if hidden:
            with self._lock:
                self._write_through_staging(hidden)

    def read(self, source: Allocation, nbytes: int) -> Words:
        """The first ``nbytes`` bytes, a copy."""
        self._device.finish()
        if source.view is not None:
            return source.view[:nbytes].copy().view(np.uint32)
        with self._lock:
            return self._read_through_staging(source, nbytes).view(np.uint32)

    def close(self) -> None:
        """Free what is held."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _write_through_staging(self, items: Sequence[tuple[Allocation, Bytes]]) -> None:
        total = sum(data.size for _, data in items)
        staging = self._device.memory("upload").allocate(min(self._room, max(4, total)))
        try:
            assert staging.view is not None
            copies: list[tuple[Allocation, int, int, int]] = []
            used = 0
            for target, data in items:
                at = 0
                while at < data.size:
                    if used == staging.size:
                        self._flush(staging, copies)
                        copies, used = [], 0
                    size = min(data.size - at, staging.size - used)
                    staging.view[used : used + size] = data[at : at + size]
                    copies.append((target, used, at, size))
                    used, at = used + size, at + size
            self._flush(staging, copies)
        finally:
            self._device.memory("upload").free(staging)

    def _read_through_staging(self, source: Allocation, nbytes: int) -> Bytes:
        result = np.empty(nbytes, np.uint8)
        memory = self._device.memory("download")
        staging = memory.allocate(min(self._room, max(4, nbytes)))
        try:
            assert staging.view is not None
            for at in range(0, nbytes, staging.size):
                size = min(staging.size, nbytes - at)
                recorder = self._commands().record()
                recorder.copy(source, staging, [(at, 0, size)])
                self._run(recorder.end())
                result[at : at + size] = staging.view[:size]
        finally:
            memory.free(staging)
        return result

    def _flush(self, staging: Allocation, copies: list[tuple[Allocation, int, int, int]]) -> None:
        recorder = self._commands().record()
        for target, *where in copies:
            recorder.copy(staging, target, [tuple(where)])
        self._run(recorder.end())

    def _commands(self) -> CommandPool:
        if self._pool is None:
            self._pool = CommandPool(self._device)
        return self._pool

    def _run(self, commands: object) -> None:
        self._device.wait(self._device.submit(commands))
        self._commands().reset()
