"""A plan on a WebGPU device: buffers, pipelines and bind groups made once, replayed per call."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from nybble.contract import Array
from nybble.contract.layouts import Words
from nybble.devices.base import Timing, check_dispatches, run_reference
from nybble.plan import Dispatch, HostCall, Place, Plan, Region

from .encode import ApiEncoder, PreparedDispatch, encoder_for
from .states import WebGpuStates
from .timing import DispatchTimer

if TYPE_CHECKING:
    from .device import WebGpuDevice

__all__ = ["WebGpuExecutable"]


class WebGpuExecutable:
    """Replays one plan. Not for use from several threads at once."""

    def __init__(self, device: WebGpuDevice, plan: Plan, states: WebGpuStates) -> None:
        self.device = device
        self.plan = plan
        usage = device.module.BufferUsage
        storage = usage.STORAGE | usage.COPY_DST | usage.COPY_SRC
        kept = {
            state.place.buffer: states.buffer(state, plan.buffers[state.place.buffer], storage)
            for state in plan.states
        }
        self._buffers = [
            kept.get(i) or device.buffer(size, storage if i else usage.UNIFORM | usage.COPY_DST)
            for i, size in enumerate(plan.buffers)
        ]
        self._own = [buffer for i, buffer in enumerate(self._buffers) if i not in kept]
        self._upload_constants()
        self.prepared = {
            index: self._prepare(step)
            for index, step in enumerate(plan.steps)
            if isinstance(step, Dispatch)
        }
        self._segments = self._cut_segments()
        self._offsets, self._staging_size = _offsets(plan.outputs)
        self._free_staging: list[Any] = []
        self._all_staging: list[Any] = []
        self._encoders: list[Any] = [ApiEncoder(s) for s in self._dispatch_lists()]
        self._ready: tuple[Any, Any] | None = None
        self._settled = True
        self._replays = 0

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs for inputs of the plan's types."""
        return self.submit(inputs).result()

    def submit(self, inputs: Sequence[Array]) -> Pending:
        """Start a run without waiting for it."""
        with self.device.errors():
            self._write_inputs(inputs)
            return Pending(self, self._submit_all())

    def trace(self, inputs: Sequence[Array]) -> list[tuple[Array, ...]]:
        """Results of every call, in order."""
        with self.device.errors():
            self._write_inputs(inputs)
            self._free_staging.append(self._submit_all())
            return [tuple(self._read(place) for place in places) for places in self.plan.places]

    def adopt(self, plan: Plan) -> bool:
        """Take a plan that differs in parameters and grids alone; False if it differs in more."""
        if not self.plan.same_structure(plan):
            return False
        self.plan = plan
        with self.device.errors():
            self.device.handle.queue.write_buffer(self._buffers[0], 0, plan.params)
        for index, step in enumerate(plan.steps):
            if isinstance(step, Dispatch):
                self.prepared[index] = replace(self.prepared[index], grid=step.grid)
        self._segments = self._cut_segments()
        self._encoders = [encoder_for(self.device.module, s) for s in self._dispatch_lists()]
        self._settled = False
        if self._ready is not None:
            self._free_staging.append(self._ready[1])
            self._ready = None
        return True

    def close(self) -> None:
        """Free the buffers; the executable cannot run again."""
        self._ready = None
        for buffer in (*self._own, *self._all_staging):
            buffer.destroy()

    def profile(self, inputs: Sequence[Array], repeats: int) -> list[Timing]:
        """Median time of each step over ``repeats`` runs.

        Inputs are uploaded once: later runs see what the first left, which costs the same.
        """
        with self.device.errors():
            self._write_inputs(inputs)
            runs = [self._profile_once(self._timer) for _ in range(repeats)]
        begin = 0.0
        timings = []
        for index, step in enumerate(self.plan.steps):
            seconds = statistics.median(run[index] for run in runs)
            timings.append(Timing(index, seconds, begin, isinstance(step, HostCall)))
            begin += seconds
        return timings

    def time_steps(self, indices: Sequence[int], repeats: int, rows: int = 1) -> list[float]:
        """Seconds of dispatches in a row; see TimedExecutable."""
        dispatches = [self.prepared[i] for i in check_dispatches(self.plan, indices)]
        with self.device.errors():
            return self._timer.in_a_row(dispatches, repeats, rows)

    @cached_property
    def _timer(self) -> DispatchTimer:
        return DispatchTimer(self.device)

    def _upload_constants(self) -> None:
        queue = self.device.handle.queue
        if self.plan.params:
            queue.write_buffer(self._buffers[0], 0, self.plan.params)
        for constant in self.plan.constants:
            if constant.words.size:
                queue.write_buffer(self._buffers[constant.buffer], 0, constant.words)

    def _prepare(self, step: Dispatch) -> PreparedDispatch:
        reads, writes = len(step.reads), len(step.writes)
        pipeline = self.device.pipeline(step.shader, step.label, reads, writes)
        regions = (*step.reads, *step.writes, step.params)
        group = self.device.handle.create_bind_group(
            layout=self.device.layout(reads, writes)[0],
            entries=[
                {"binding": i, "resource": self._resource(region)}
                for i, region in enumerate(regions)
            ],
        )
        return PreparedDispatch(pipeline, group, step.grid)

    def _resource(self, region: Region) -> dict[str, Any]:
        return {
            "buffer": self._buffers[region.buffer],
            "offset": region.offset,
            "size": region.size,
        }

    def _cut_segments(self) -> list[HostCall | list[PreparedDispatch]]:
        segments: list[HostCall | list[PreparedDispatch]] = []
        for index, step in enumerate(self.plan.steps):
            if isinstance(step, HostCall):
                segments.append(step)
            elif segments and isinstance(segments[-1], list):
                segments[-1].append(self.prepared[index])
            else:
                segments.append([self.prepared[index]])
        return segments

    def _dispatch_lists(self) -> list[list[PreparedDispatch]]:
        return [segment for segment in self._segments if isinstance(segment, list)]

    def _submit_all(self) -> Any:
        """Run every segment; the staging buffer into which the outputs are copied."""
        if len(self._segments) <= 1 and not self.plan.host_calls:
            (command, staging), self._ready = self._ready or self._encode_whole(), None
            self.device.handle.queue.submit([command])
            self._after_first_run()
            # The next call's commands are recorded while the GPU works on this one's, but not where
            # the plan changes between calls: wgpu-native keeps commands that were dropped.
            self._ready = self._encode_whole() if self._settled else None
            self._settled = True
            return staging
        encoders = iter(self._encoders)
        for segment in self._segments:
            if isinstance(segment, HostCall):
                self._run_on_host(segment)
            else:
                command = self.device.handle.create_command_encoder()
                self._encode_pass(command, next(encoders))
                self.device.handle.queue.submit([command.finish()])
        command = self.device.handle.create_command_encoder()
        staging = self._copy_outputs(command)
        self.device.handle.queue.submit([command.finish()])
        self._after_first_run()
        return staging

    def _after_first_run(self) -> None:
        """The first run goes through the validating API; later ones take the quick way."""
        if self._replays == 0:
            self._encoders = [encoder_for(self.device.module, s) for s in self._dispatch_lists()]
        self._replays += 1

    def _encode_whole(self) -> tuple[Any, Any]:
        command = self.device.handle.create_command_encoder()
        for encoder in self._encoders:
            self._encode_pass(command, encoder)
        staging = self._copy_outputs(command)
        return command.finish(), staging

    @staticmethod
    def _encode_pass(command: Any, encoder: Any) -> None:
        compute_pass = command.begin_compute_pass()
        encoder.encode(compute_pass)
        compute_pass.end()

    def _copy_outputs(self, command: Any) -> Any:
        staging = self._take_staging()
        for place, offset in zip(self.plan.outputs, self._offsets, strict=True):
            if place.nbytes:
                command.copy_buffer_to_buffer(
                    self._buffers[place.buffer], 0, staging, offset, place.nbytes
                )
        return staging

    def _take_staging(self) -> Any:
        if self._free_staging:
            return self._free_staging.pop()
        usage = self.device.module.BufferUsage
        size = max(16, self._staging_size)
        self._all_staging.append(self.device.buffer(size, usage.MAP_READ | usage.COPY_DST))
        return self._all_staging[-1]

    def read_staging(self, staging: Any) -> list[Array]:
        """Wait for a run's outputs, and give its staging buffer back."""
        staging.map_sync("READ_NOSYNC" if self._is_native else "READ")
        try:
            view = np.frombuffer(staging.read_mapped(copy=False), np.uint32)
            results = [
                _unpack(place, view[offset // 4 : (offset + place.nbytes) // 4]).copy()
                for place, offset in zip(self.plan.outputs, self._offsets, strict=True)
            ]
            del view
        finally:
            staging.unmap()
            self._free_staging.append(staging)
        return results

    @property
    def _is_native(self) -> bool:
        return bool(self.device.module.__name__ == "wgpu")

    def _write_inputs(self, inputs: Sequence[Array]) -> None:
        for place, array in zip(self.plan.inputs, inputs, strict=True):
            self._write(place, array)

    def _write(self, place: Place, array: Array) -> None:
        words = place.layout.pack(array, {})
        if words.size:
            self.device.handle.queue.write_buffer(self._buffers[place.buffer], 0, words)

    def _read(self, place: Place) -> Array:
        if not place.nbytes:
            return np.zeros(place.value.shape, place.value.dtype.numpy)
        data = self.device.handle.queue.read_buffer(self._buffers[place.buffer], 0, place.nbytes)
        return _unpack(place, np.frombuffer(data, np.uint32))

    def _run_on_host(self, step: HostCall) -> None:
        tensors = {name: self._read(place) for name, place in step.reads.items()}
        results = run_reference(self.plan.calls[step.call], tensors)
        for place, result in zip(step.writes, results, strict=True):
            self._write(place, result)

    def _profile_once(self, timer: DispatchTimer) -> list[float]:
        seconds: list[float] = []
        for segment in self._segments:
            if isinstance(segment, HostCall):
                start = time.perf_counter()
                self._run_on_host(segment)
                seconds.append(time.perf_counter() - start)
            else:
                seconds += timer.seconds(segment)
        return seconds


class Pending:
    """A run under way; its outputs are fetched when asked for."""

    def __init__(self, executable: WebGpuExecutable, staging: Any) -> None:
        self._executable = executable
        self._staging = staging
        self._outputs: list[Array] | None = None

    def result(self) -> list[Array]:
        """The outputs, waiting for the device if need be."""
        if self._outputs is None:
            with self._executable.device.errors():
                self._outputs = self._executable.read_staging(self._staging)
            self._staging = None
        return self._outputs


def _offsets(places: Sequence[Place]) -> tuple[list[int], int]:
    offsets, total = [], 0
    for place in places:
        offsets.append(total)
        total += -(-place.nbytes // 16) * 16
    return offsets, total


def _unpack(place: Place, words: Words) -> Array:
    assert place.layout.unpack is not None
    return place.layout.unpack(words, place.value.dtype, place.value.shape)
