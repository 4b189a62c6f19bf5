"""Host time to encode and submit a dispatch: bind groups kept, one pass of 200 dispatches."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from bench.common import Row, Sample
from nybble.contract import REGISTRY
from nybble.devices import Device
from nybble.devices.webgpu.encode import ApiEncoder, encoder_for
from nybble.graph import single_call
from nybble.plan import make_plan

__all__ = ["measure"]

COUNT = 200


def measure(device: Device) -> list[Row]:
    """Microseconds a dispatch, with nybble's encoder and with the module's own API."""
    rows = []
    target = "<= 3 us" if device.capabilities.software else "<= 5 us"
    for what, encoder in (("nybble's encoder", encoder_for), ("wgpu-py's own calls", _api)):
        sample = _encode(device, encoder)
        rows.append(
            Row("dispatch", f"encode, finish and submit: {what}", sample.median * 1e6 / COUNT,
                "us", None, target=target if encoder is encoder_for else "",
                note=f"least {sample.least * 1e6 / COUNT:.3g}, most {sample.most * 1e6 / COUNT:.3g}"
                     f" of {sample.runs} runs")
        )  # fmt: skip
    return rows


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
    for _ in range(100):
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
