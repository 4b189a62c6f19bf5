"""Times single dispatches: GPU timestamps where the adapter has them, else time to idle."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .encode import ApiEncoder, PreparedDispatch

if TYPE_CHECKING:
    from .device import WebGpuDevice

__all__ = ["DispatchTimer"]

QUERIES = 1024
"""Timestamps of one query set; WebGPU allows 4096."""


class DispatchTimer:
    """Times dispatches one by one, each in a compute pass of its own."""

    def __init__(self, device: WebGpuDevice) -> None:
        self._handle = device.handle
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
            return [self._wall(dispatch) for dispatch in dispatches]
        times: list[float] = []
        for start in range(0, len(dispatches), QUERIES // 2):
            times += self._timestamps(dispatches[start : start + QUERIES // 2])
        return times

    def _timestamps(self, dispatches: Sequence[PreparedDispatch]) -> list[float]:
        command = self._handle.create_command_encoder()
        for index, dispatch in enumerate(dispatches):
            compute_pass = command.begin_compute_pass(
                timestamp_writes={
                    "query_set": self._set,
                    "beginning_of_pass_write_index": 2 * index,
                    "end_of_pass_write_index": 2 * index + 1,
                }
            )
            ApiEncoder([dispatch]).encode(compute_pass)
            compute_pass.end()
        # A GPU left alone clocks down while commands are encoded: the first run wakes it.
        wake = self._handle.create_command_encoder()
        compute_pass = wake.begin_compute_pass()
        ApiEncoder(dispatches).encode(compute_pass)
        compute_pass.end()
        count = 2 * len(dispatches)
        command.resolve_query_set(self._set, 0, count, self._resolved, 0)
        self._handle.queue.submit([wake.finish(), command.finish()])
        data = self._handle.queue.read_buffer(self._resolved, 0, count * 8)
        ticks = np.frombuffer(data, np.int64).reshape(-1, 2)
        return [max(0, int(end - begin)) * 1e-9 for begin, end in ticks]

    def _wall(self, dispatch: PreparedDispatch) -> float:
        start = time.perf_counter()
        command = self._handle.create_command_encoder()
        compute_pass = command.begin_compute_pass()
        ApiEncoder([dispatch]).encode(compute_pass)
        compute_pass.end()
        self._handle.queue.submit([command.finish()])
        self._handle.queue.read_buffer(self._idle)
        return time.perf_counter() - start
