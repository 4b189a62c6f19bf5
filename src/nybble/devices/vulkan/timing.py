"""Times single dispatches: GPU timestamps where the queue has them, else time to idle."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .api import bindings, check, struct
from .commands import BoundDispatch, CommandPool

if TYPE_CHECKING:
    from .device import VulkanDevice

__all__ = ["SegmentTimer"]

_TIMESTAMP = 2
_RESULTS_OF_64_BITS_WAITED_FOR = 1 | 2


class SegmentTimer:
    """Times the dispatches of a plan's segments one by one, each alone on the device."""

    def __init__(self, device: VulkanDevice, segments: Sequence[Sequence[BoundDispatch]]) -> None:
        self._device = device
        self._segments = segments
        self._pool = CommandPool(device)
        self._queries: Any = None
        self._count = 2 * max(map(len, segments))
        if device.has_timestamps and self._count:
            self._queries = self._new_queries()
        self._recorded = [self._record(segment) for segment in segments]

    def run(self, after: Callable[[int], None]) -> list[float]:
        """Seconds of each step of a run: dispatches, and ``after(i)`` between segments."""
        seconds: list[float] = []
        for index, commands in enumerate(self._recorded):
            seconds += self._seconds(index, commands)
            if index + 1 < len(self._recorded):
                start = time.perf_counter()
                after(index)
                seconds.append(time.perf_counter() - start)
        return seconds

    def close(self) -> None:
        """Free what is held."""
        self._device.finish_quietly()
        self._pool.close()
        if self._queries is not None:
            null = bindings().ffi.NULL
            self._device.vk.vkDestroyQueryPool(self._device.handle, self._queries, null)

    def _new_queries(self) -> Any:
        ffi, device = bindings().ffi, self._device
        create = struct("VkQueryPoolCreateInfo", queryType=_TIMESTAMP, queryCount=self._count)
        pool = ffi.new("VkQueryPool*")
        check(
            device.vk.vkCreateQueryPool(device.handle, create, ffi.NULL, pool),
            f"{device.info.name}: creating {self._count} timestamps",
        )
        return pool[0]

    def _record(self, dispatches: Sequence[BoundDispatch]) -> list[Any]:
        if self._queries is None:
            return [self._alone(dispatch) for dispatch in dispatches]
        recorder = self._pool.record()
        recorder.reset_queries(self._queries, self._count)
        for index, dispatch in enumerate(dispatches):
            # The dispatch's own barrier would be timed with it, and this one does its work.
            recorder.barrier()
            recorder.timestamp(self._queries, 2 * index)
            recorder.dispatch([replace(dispatch, waits=False)])
            recorder.timestamp(self._queries, 2 * index + 1)
        return [recorder.end()]

    def _alone(self, dispatch: BoundDispatch) -> Any:
        recorder = self._pool.record()
        recorder.dispatch([dispatch])
        return recorder.end()

    def _seconds(self, index: int, commands: Sequence[Any]) -> list[float]:
        if self._queries is None:
            return [self._wall(item) for item in commands]
        for item in commands:
            self._device.wait(self._device.submit(item))
        return self._read(len(self._segments[index]))

    def _wall(self, commands: Any) -> float:
        start = time.perf_counter()
        self._device.wait(self._device.submit(commands))
        return time.perf_counter() - start

    def _read(self, dispatches: int) -> list[float]:
        if not dispatches:
            return []
        ffi, device = bindings().ffi, self._device
        ticks = ffi.new("uint64_t[]", 2 * dispatches)
        check(
            device.vk.vkGetQueryPoolResults(
                device.handle, self._queries, 0, 2 * dispatches, 16 * dispatches, ticks, 8,
                _RESULTS_OF_64_BITS_WAITED_FOR,
            ),
            f"{device.info.name}: reading timestamps",
        )  # fmt: skip
        period, mask = device.adapter.timestamp_period, (1 << device.adapter.timestamp_bits) - 1
        return [((ticks[2 * i + 1] - ticks[2 * i]) & mask) * period for i in range(dispatches)]
