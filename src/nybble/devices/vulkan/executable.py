"""A plan on a Vulkan device: recorded once, resubmitted per call."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nybble.contract import Array
from nybble.devices.base import Timing, check_dispatches, run_reference
from nybble.errors import DeviceError
from nybble.plan import Dispatch, HostCall, Place, Plan

from .commands import BoundDispatch, CommandPool
from .hazards import barriers_before
from .memory import Allocation
from .pipelines import DescriptorSets
from .segments import Segment, cut_segments
from .slots import Slot, unpacked
from .states import VulkanStates
from .timing import RowTimer, SegmentTimer

if TYPE_CHECKING:
    from .device import VulkanDevice

__all__ = ["Pending", "VulkanExecutable"]


class VulkanExecutable:
    """Replays one plan. Not for use from several threads at once."""

    def __init__(self, device: VulkanDevice, plan: Plan, states: VulkanStates) -> None:
        self.device = device
        self.plan = plan
        self._segments = cut_segments(plan)
        self._free_slots: list[Slot] = []
        self._slots: list[Slot] = []
        self._own: list[Allocation] = []
        self._last = 0
        self._closed = True
        self._states: VulkanStates | None = states
        self.buffers: tuple[Allocation, ...] = ()
        self.bound: dict[int, BoundDispatch] = {}
        dispatches = [step for step in plan.steps if isinstance(step, Dispatch)]
        self._check_grids(dispatches)
        self.pool = CommandPool(device)
        self._sets: DescriptorSets | None = None
        self._closed = False
        try:
            self._allocate(states)
            storages = [len(step.reads) + len(step.writes) for step in dispatches]
            self._sets = DescriptorSets(device, storages)
            self._bind()
        except BaseException:
            self.close()
            raise

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs for inputs of the plan's types."""
        return self.submit(inputs).result()

    def submit(self, inputs: Sequence[Array]) -> Pending:
        """Start a run without waiting for it; calls on the host are waited for."""
        self._check_open()
        slot = self._take_slot()
        try:
            # What the device still reads may not be written in place.
            direct = self.device.adapter.unified and self.device.is_done(self._last)
            arrays = inputs
            for index, segment in enumerate(self._segments):
                slot.put(segment, arrays, direct=direct)
                slot.value = self.device.submit(slot.commands(index, segment, direct=direct))
                self._last = slot.value
                if segment.host is not None:
                    arrays = self._run_on_host(segment, slot)
        except BaseException:
            self._free_slots.append(slot)
            raise
        return Pending(self, slot)

    def trace(self, inputs: Sequence[Array]) -> list[tuple[Array, ...]]:
        """Results of every call, in order."""
        self.run(inputs)
        return [tuple(self._read(place) for place in places) for places in self.plan.places]

    def profile(self, inputs: Sequence[Array], repeats: int) -> list[Timing]:
        """Median time of each step over ``repeats`` runs.

        Inputs are uploaded once: later runs see what the first left, which costs the same.
        """
        self._check_open()
        self.run(inputs)
        timer = SegmentTimer(self.device, [self._dispatches(s) for s in self._segments])
        try:
            runs = [timer.run(self._hosted) for _ in range(repeats)]
        finally:
            timer.close()
        begin, timings = 0.0, []
        for index, step in enumerate(self.plan.steps):
            seconds = statistics.median(run[index] for run in runs)
            timings.append(Timing(index, seconds, begin, isinstance(step, HostCall)))
            begin += seconds
        return timings

    def time_steps(self, indices: Sequence[int], repeats: int, rows: int = 1) -> list[float]:
        """Seconds of dispatches in a row; see TimedExecutable."""
        self._check_open()
        timer = RowTimer(self.device, self.row(indices, repeats), rows)
        try:
            return [seconds / repeats for seconds in timer.run()]
        finally:
            timer.close()

    def row(self, indices: Sequence[int], repeats: int) -> list[BoundDispatch]:
        """Dispatches ``repeats`` times over, with the barriers of a plan of them."""
        order = [*check_dispatches(self.plan, indices)] * repeats
        steps = (self.plan.steps[index] for index in order)
        waits = barriers_before([step for step in steps if isinstance(step, Dispatch)])
        return [
            replace(self.bound[index], waits=wait) for index, wait in zip(order, waits, strict=True)
        ]

    def take(self, slot: Slot) -> list[Array]:
        """Wait for a run's outputs, and give its slot back."""
        self._check_open()
        self.device.wait(slot.value)
        results = slot.take(self._segments[-1])
        self._free_slots.append(slot)
        return results

    def release(self, slot: Slot) -> None:
        """Give back the slot of a run whose outputs nobody wants."""
        if not self._closed:
            self._free_slots.append(slot)

    def adopt(self, plan: Plan) -> bool:
        """Take a plan that differs in parameters and grids alone; False if it differs in more."""
        if not self.plan.same_structure(plan):
            return False
        self._check_open()
        steps = {i: step for i, step in enumerate(plan.steps) if isinstance(step, Dispatch)}
        self._check_grids(list(steps.values()))
        # Waits for the runs under way, which read the record.
        self.device.transfer.write([(self.buffers[0], np.frombuffer(plan.params, np.uint32))])
        if any(self.bound[i].grid != step.grid for i, step in steps.items()):
            self.bound = {i: replace(self.bound[i], grid=step.grid) for i, step in steps.items()}
            for slot in self._slots:
                slot.forget_commands()
            self.pool.reset()
        self.plan, self._segments = plan, cut_segments(plan)
        return True

    def close(self) -> None:
        """Free what the plan holds; the executable cannot run again."""
        if self._closed:
            return
        self._closed = True
        self.device.finish_quietly()
        for slot in self._slots:
            slot.close()
        if self._sets is not None:
            self._sets.close()
        self.pool.close()
        for allocation in self._own:
            self.device.memory("device").free(allocation)
        self._own.clear()
        self._states = None

    def __del__(self) -> None:
        if not self._closed:
            self.device.bury(self)

    def _check_open(self) -> None:
        self.device.check_present()
        if self._closed:
            raise DeviceError(f"method '{self.plan.name}' is closed; load the program again")

    def _check_grids(self, dispatches: Sequence[Dispatch]) -> None:
        limit = self.device.capabilities.max_groups
        for step in dispatches:
            if max(step.grid) > limit:
                raise DeviceError(
                    f"{step.label}: a grid of {step.grid} workgroups; {self.device.info.name} "
                    f"takes {limit:,} a dimension. Plan with this device's capabilities"
                )

    def _allocate(self, states: VulkanStates) -> None:
        plan, memory = self.plan, self.device.memory("device")
        kept = {
            state.place.buffer: states.allocation(state, plan.buffers[state.place.buffer])
            for state in plan.states
        }
        buffers = []
        for index, size in enumerate(plan.buffers):
            if index not in kept:
                self._own.append(memory.allocate(size))
            buffers.append(kept[index] if index in kept else self._own[-1])
        self.buffers = tuple(buffers)
        self.device.transfer.clear(self._own)
        params = np.frombuffer(plan.params, np.uint32)
        constants = [(self.buffers[c.buffer], c.words) for c in plan.constants]
        self.device.transfer.write([(self.buffers[0], params), *constants])

    def _bind(self) -> None:
        for segment in self._segments:
            steps = [(i, self.plan.steps[i]) for i in segment.steps]
            dispatches = [(i, step) for i, step in steps if isinstance(step, Dispatch)]
            waits = barriers_before([step for _, step in dispatches])
            for (index, step), wait in zip(dispatches, waits, strict=True):
                self.bound[index] = self._bound(step, waits=wait)

    def _bound(self, step: Dispatch, *, waits: bool) -> BoundDispatch:
        assert self._sets is not None
        pipelines, storages = self.device.pipelines, len(step.reads) + len(step.writes)
        layout = pipelines.layout(storages)
        ranges = []
        for region in (*step.reads, *step.writes, step.params):
            place = self.buffers[region.buffer]
            ranges.append((place.block.buffer, place.offset + region.offset, region.size))
        return BoundDispatch(
            pipelines.pipeline(step.shader, step.label, storages),
            layout.pipeline[0],
            self._sets.bind(layout, ranges),
            step.grid,
            waits,
        )

    def _dispatches(self, segment: Segment) -> list[BoundDispatch]:
        return [self.bound[step] for step in segment.steps]

    def _take_slot(self) -> Slot:
        if self._free_slots:
            slot = self._free_slots.pop()
            # Its last run may be one that nobody waited for.
            self.device.wait(slot.value)
            return slot
        slot = Slot(self, self._segments)
        self._slots.append(slot)
        return slot

    def _run_on_host(self, segment: Segment, slot: Slot) -> tuple[Array, ...]:
        assert segment.host is not None
        self.device.wait(slot.value)
        tensors = dict(zip(segment.host.reads, slot.take(segment), strict=True))
        return run_reference(self.plan.calls[segment.host.call], tensors)

    def _hosted(self, index: int) -> None:
        """The host call after a segment, with its copies, as a run does them."""
        segment, following = self._segments[index], self._segments[index + 1]
        assert segment.host is not None
        tensors = {name: self._read(place) for name, place in segment.host.reads.items()}
        results = run_reference(self.plan.calls[segment.host.call], tensors)
        self.device.transfer.write(
            (self.buffers[place.buffer], place.layout.pack(result, {}))
            for place, result in zip(following.uploads, results, strict=True)
        )

    def _read(self, place: Place) -> Array:
        if not place.nbytes:
            return np.zeros(place.value.shape, place.value.dtype.numpy)
        return unpacked(place, self.device.transfer.read(self.buffers[place.buffer], place.nbytes))


class Pending:
    """A run under way; its outputs are fetched when asked for."""

    def __init__(self, executable: VulkanExecutable, slot: Slot) -> None:
        self._executable = executable
        self._slot: Slot | None = slot
        self._outputs: list[Array] | None = None

    def result(self) -> list[Array]:
        """The outputs, waiting for the device if need be."""
        if self._outputs is None:
            assert self._slot is not None
            self._outputs = self._executable.take(self._slot)
            self._slot = None
        return self._outputs

    def __del__(self) -> None:
        if self._slot is not None:
            self._executable.release(self._slot)
