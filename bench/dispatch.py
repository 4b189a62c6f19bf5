"""Host time a dispatch of 200: of a replayed call, and of WebGPU's encoding alone.

A replayed call is what a user pays: inputs laid down, commands submitted, each dispatch waiting
for the one before. WebGPU encodes anew for every call; Vulkan submits what was recorded once.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from bench.common import Row, Sample, Targets, keep_busy
from nybble.contract import REGISTRY
from nybble.devices import Device, Executable
from nybble.devices.webgpu import WebGpuDevice
from nybble.devices.webgpu.encode import ApiEncoder, encoder_for
from nybble.graph import GraphBuilder, single_call
from nybble.plan import make_plan

__all__ = ["measure"]

COUNT = 200
RUNS = 100
REPLAY = Targets(vulkan="<= 0.3 us")
ENCODE = Targets(software="<= 3 us", webgpu="<= 5 us")


def measure(device: Device) -> list[Row]:
    """Microseconds a dispatch: of the whole call, of its submission, of encoding."""
    submitted, whole = _replay(device)
    rows = [
        _row("submit a replayed call", submitted, REPLAY.of(device)),
        _row("replayed call, result waited for", whole, ""),
    ]
    if isinstance(device, WebGpuDevice):
        ours, theirs = _encode(device, encoder_for), _encode(device, _api)
        rows += [
            _row("encode, finish and submit: nybble's encoder", ours, ENCODE.of(device)),
            _row("encode, finish and submit: wgpu-py's own calls", theirs, ""),
        ]
    return rows


def _row(what: str, sample: Sample, target: str) -> Row:
    return Row(
        "dispatch", f"{what}, {COUNT} dispatches, each", sample.median * 1e6 / COUNT, "us",
        target=target,
        note=f"least {sample.least * 1e6 / COUNT:.3g}, most {sample.most * 1e6 / COUNT:.3g}"
             f" of {sample.runs} runs",
    )  # fmt: skip


def _replay(device: Device) -> tuple[Sample, Sample]:
    """Times to submit a call of dependent dispatches, and until its result is there."""
    b = GraphBuilder("dispatches")
    value = b.input("x", "float32", (2, 3))
    for _ in range(COUNT):
        value = b.call("aten.relu.default", x=value)
    plan = make_plan(b.finish([value]), device.capabilities)
    assert len(plan.steps) == COUNT, f"{len(plan.steps)} dispatches for {COUNT} calls"
    executable: Executable = device.prepare(plan)
    inputs = [np.ones((2, 3), np.float32)]
    keep_busy(lambda: executable.run(inputs))
    submitted, whole = [], []
    for _ in range(RUNS):
        start = time.perf_counter()
        pending = executable.submit(inputs)
        submitted.append(time.perf_counter() - start)
        pending.result()
        whole.append(time.perf_counter() - start)
    executable.close()
    return Sample.of(submitted), Sample.of(whole)


def _api(module: Any, dispatches: Any) -> ApiEncoder:
    return ApiEncoder(dispatches)


def _encode(device: Any, encoder_of: Any) -> Sample:
    arguments = {"x": np.zeros((2, 3), np.float32)}
    graph, inputs = single_call(REGISTRY["aten.relu.default"], arguments)
    executable = device.prepare(make_plan(graph, device.capabilities))
    executable.run(inputs)
    dispatches = [executable.prepared[0]] * COUNT
    encoder = encoder_of(device.module, dispatches)
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        command = device.handle.create_command_encoder()
        compute_pass = command.begin_compute_pass()
        encoder.encode(compute_pass)
        compute_pass.end()
        device.handle.queue.submit([command.finish()])
        times.append(time.perf_counter() - start)
        executable.run(inputs)
    executable.close()
    return Sample.of(times)
