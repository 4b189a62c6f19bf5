"""MobileNetV2 1.0 int8, 224x224, batch 1, random weights: the whole call, memory, exactness.

Floor: 300 M products; the time of the kernels alone is printed beside the call.
"""

from __future__ import annotations

import numpy as np
from rich.console import Console

import nybble
from bench.common import FOLDER, Row, Targets, timed
from nybble.devices import Device

__all__ = ["measure"]

MODEL = FOLDER / "models" / "mobilenet_v2_int8.pte"
TARGETS = Targets(software="<= 100 ms", webgpu="<= 1.5 ms", vulkan="<= 0.5 ms")


def measure(device: Device) -> list[Row]:
    """Whole call, kernels alone, and memory."""
    software = device.capabilities.software
    program = nybble.load(MODEL, device=device.info.name, on_unsupported="error")
    method = program["forward"]
    x = np.random.default_rng(0).standard_normal(method.inputs[0].shape).astype(np.float32)
    report = program.verify(x)
    sample = timed(lambda: program(x), seconds=5 if software else 2, least=15)
    profile = program.profile(x, repeats=5)
    Console(width=170).print(profile.table())
    plan = method.plan
    live = plan.largest_live_set()
    exact = "codes exact" if report else f"WRONG: {report.summary}"
    share = plan.activation_bytes / live
    return [
        Row("mobilenet", "whole call, copies included", sample.median * 1e3, "ms", sample,
            target=TARGETS.of(device),
            note=f"{len(plan.steps)} dispatches; {exact}"),
        Row("mobilenet", "kernels alone", profile.kernel_seconds * 1e3, "ms"),
        Row("mobilenet", "memory of activations", plan.activation_bytes / 1e6, "MB",
            floor=f"{live / 1e6:.4g} MB live at once", target="<= 1.3 x the largest live set",
            note=f"{share:.2f} x; constants {plan.constant_bytes / 1e6:.4g} MB"),
    ]  # fmt: skip
