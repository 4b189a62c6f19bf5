"""Times dispatches: GPU timestamps where the queue has them, else time to idle."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .api import bindings, check, struct
from .commands import BoundDispatch, CommandPool, Recorder

if TYPE_CHECKING:
    from .device import VulkanDevice

__all__ = ["RowTimer", "SegmentTimer"]

_TIMESTAMP = 2
_RESULTS_OF_64_BITS_WAITED_FOR = 1 | 2


class _Intervals:
    """A pool of timestamps, two an interval."""

    def __init__(self, device: VulkanDevice, count: int) -> None:
        self._device = device
        self.count = count
        create = struct("VkQueryPoolCreateInfo", queryType=_TIMESTAMP, queryCount=2 * count)
        pool = bindings().ffi.new("VkQueryPool*")
        check(
            device.vk.vkCreateQueryPool(device.handle, create, bindings().ffi.NULL, pool),
            f"{device.info.name}: creating {2 * count} timestamps",
        )
        self.pool = pool[0]

    def reset(self, recorder: Recorder) -> None:
        """Make all of them writable."""
        recorder.reset_queries(self.pool, 2 * self.count)

    def record(self, recorder: Recorder, index: int, items: Sequence[BoundDispatch]) -> None:
        """Dispatches, and when they began and were done."""
        # What is before must be done, and its barrier not be timed.
        recorder.barrier()
        recorder.timestamp(self.pool, 2 * index)
        recorder.dispatch(items)
        recorder.timestamp(self.pool, 2 * index + 1)

    def read(self, count: int) -> list[float]:
        """Seconds of the first ``count`` intervals, which must have been submitted."""
        if not count:
            return []
        device, ticks = self._device, bindings().ffi.new("uint64_t[]", 2 * count)
        check(
            device.vk.vkGetQueryPoolResults(
                device.handle, self.pool, 0, 2 * count, 16 * count, ticks, 8,
                _RESULTS_OF_64_BITS_WAITED_FOR,
            ),
            f"{device.info.name}: reading timestamps",
        )  # fmt: skip
        period, mask = device.adapter.timestamp_period, (1 << device.adapter.timestamp_bits) - 1
        return [((ticks[2 * i + 1] - ticks[2 * i]) & mask) * period for i in range(count)]

    def close(self) -> None:
        """Free the pool; nothing that writes it may be in use."""
        self._device.vk.vkDestroyQueryPool(self._device.handle, self.pool, bindings().ffi.NULL)


class RowTimer:
    """Times dispatches in a row, with the barriers that they ask for, several times over."""

    def __init__(self, device: VulkanDevice, items: Sequence[BoundDispatch], rows: int) -> None:
        self._device = device
        self._items = items
        self._rows = rows
        self._pool = CommandPool(device)
        self._intervals = _Intervals(device, rows) if device.has_timestamps and rows else None

    def run(self) -> list[float]:
        """Seconds of each row; an untimed one goes before, which wakes the clocks."""
        recorder = self._pool.record()
        if self._intervals is None:
            recorder.dispatch(self._items)
            commands = recorder.end()
            self._wall(commands)
            return [self._wall(commands) for _ in range(self._rows)]
        self._intervals.reset(recorder)
        recorder.dispatch(self._items)
        for index in range(self._rows):
            self._intervals.record(recorder, index, self._items)
        self._wall(recorder.end())
        return self._intervals.read(self._rows)

    def close(self) -> None:
        """Free what is held."""
        self._device.finish_quietly()
        self._pool.close()
        if self._intervals is not None:
            self._intervals.close()

    def _wall(self, commands: Any) -> float:
        start = time.perf_counter()
        self._device.wait(self._device.submit(commands))
        return time.perf_counter() - start


class SegmentTimer:
    """Times the dispatches of a plan's segments one by one, each alone on the device."""

    def __init__(self, device: VulkanDevice, segments: Sequence[Sequence[BoundDispatch]]) -> None:
        self._device = device
        self._segments = segments
        self._pool = CommandPool(device)
        count = max(map(len, segments))
        self._intervals = _Intervals(device, count) if device.has_timestamps and count else None
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
        if self._intervals is not None:
            self._intervals.close()

    def _record(self, dispatches: Sequence[BoundDispatch]) -> list[Any]:
        if self._intervals is None:
            return [self._alone(dispatch) for dispatch in dispatches]
        recorder = self._pool.record()
        self._intervals.reset(recorder)
        for index, dispatch in enumerate(dispatches):
            self._intervals.record(recorder, index, [replace(dispatch, waits=False)])
        return [recorder.end()]

    def _alone(self, dispatch: BoundDispatch) -> Any:
        recorder = self._pool.record()
        recorder.dispatch([dispatch])
        return recorder.end()

    def _seconds(self, index: int, commands: Sequence[Any]) -> list[float]:
        if self._intervals is None:
            return [self._wall(item) for item in commands]
        for item in commands:
            self._device.wait(self._device.submit(item))
        return self._intervals.read(len(self._segments[index]))

    def _wall(self, commands: Any) -> float:
        start = time.perf_counter()
        self._device.wait(self._device.submit(commands))
        return time.perf_counter() - start
