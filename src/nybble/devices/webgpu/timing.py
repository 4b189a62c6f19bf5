"""Times dispatches: GPU timestamps where the adapter has them, else time to idle."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .encode import ApiEncoder, PreparedDispatch, encoder_for

if TYPE_CHECKING:
    from .device import WebGpuDevice

__all__ = ["DispatchTimer"]

QUERIES = 1024
"""Timestamps of one query set; WebGPU allows 4096."""


class DispatchTimer:
    """Times dispatches one by one, each in a compute pass of its own, or in a row in one pass."""

    def __init__(self, device: WebGpuDevice) -> None:
        self._handle = device.handle
        self._module = device.module
        self._usage = device.module.BufferUsage
        self._set: Any = None
        if device.has_timestamps:
            self._set = self._handle.create_query_set(type="timestamp", count=QUERIES)
            self._resolved = self._handle.create_buffer(
                size=QUERIES * 8, usage=self._usage.QUERY_RESOLVE | self._usage.COPY_SRC
            )
        self._idle = self._handle.create_buffer(size=16, usage=self._usage.COPY_SRC)

    def seconds(self, dispatches: Sequence[PreparedDispatch]) -> list[float]:
        """Seconds of each dispatch, run in order."""
        if self._set is None:
            return [self._wall(ApiEncoder([dispatch])) for dispatch in dispatches]
        times: list[float] = []
        for start in range(0, len(dispatches), QUERIES // 2):
            times += self._timestamps(dispatches[start : start + QUERIES // 2])
        return times

    def in_a_row(
        self, dispatches: Sequence[PreparedDispatch], repeats: int, rows: int
    ) -> list[float]:
        """Seconds of the dispatches together, of each of ``rows`` passes of ``repeats`` of them.

        WebGPU puts a barrier between two dispatches of a pass of which one writes a buffer that
        the other uses, and none between others.
        """
        encoder = encoder_for(self._module, [*dispatches] * repeats)
        if self._set is None:
            self._wall(encoder)
            return [self._wall(encoder) / repeats for _ in range(rows)]
        seconds: list[float] = []
        for start in range(0, rows, QUERIES // 2):
            seconds += self._passes(encoder, [encoder] * min(QUERIES // 2, rows - start))
        return [row / repeats for row in seconds]

    def _timestamps(self, dispatches: Sequence[PreparedDispatch]) -> list[float]:
        return self._passes(ApiEncoder(dispatches), [ApiEncoder([one]) for one in dispatches])

    def _passes(self, wake: Any, encoders: Sequence[Any]) -> list[float]:
        """Seconds of a pass of each encoder, in one submission."""
        command = self._handle.create_command_encoder()
        for index, encoder in enumerate(encoders):
            writes = {
                "query_set": self._set,
                "beginning_of_pass_write_index": 2 * index,
                "end_of_pass_write_index": 2 * index + 1,
            }
            _encode(command, encoder, timestamp_writes=writes)
        # A GPU left alone clocks down while commands are encoded: an untimed pass wakes it.
        first = self._handle.create_command_encoder()
        _encode(first, wake)
        count = 2 * len(encoders)
        command.resolve_query_set(self._set, 0, count, self._resolved, 0)
        self._handle.queue.submit([first.finish(), command.finish()])
        data = self._handle.queue.read_buffer(self._resolved, 0, count * 8)
        ticks = np.frombuffer(data, np.int64).reshape(-1, 2)
        return [max(0, int(end - begin)) * 1e-9 for begin, end in ticks]

    def _wall(self, encoder: Any) -> float:
        start = time.perf_counter()
        command = self._handle.create_command_encoder()
        _encode(command, encoder)
        self._handle.queue.submit([command.finish()])
        self._handle.queue.read_buffer(self._idle)
        return time.perf_counter() - start


def _encode(command: Any, encoder: Any, **options: Any) -> None:
    compute_pass = command.begin_compute_pass(**options)
    encoder.encode(compute_pass)
    compute_pass.end()
