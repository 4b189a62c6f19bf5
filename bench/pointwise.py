"""q8ta_conv2d_pw, kernel time, beside a plain dot4I8Packed kernel on the same shape.

Floor: 2*M*N*K operations at the adapter's packed-dot rate (about 134 TOP/s on an H200), or at
the rate of its matrix units where the API shows them; and each byte once. Timed in a row, each
dispatch waiting for the one before: see bench.common.step_times.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.common import MATRIX_RATE, MEMORY_RATE, Row, Targets, kernel_times, random_codes
from bench.plain import plain_pointwise
from nybble.devices import Device

__all__ = ["measure", "pointwise_arguments"]

PACKED_DOT_RATE = 134e12
SHAPES = {
    "H200": [
        (64, 64, 4096, 4096, Targets(webgpu=">= 90 TOP/s", vulkan=">= 500 TOP/s")),
        (56, 56, 256, 256, Targets(webgpu="<= 12 us", vulkan="<= 8 us")),
    ],
    "software": [(56, 56, 256, 256, Targets(software="<= 25 ms")), (56, 56, 64, 256, Targets())],
}


def pointwise_arguments(h: int, w: int, ic: int, oc: int) -> dict[str, Any]:
    """Random arguments of a pointwise convolution, batch 1."""
    rng = np.random.default_rng(0)
    return {
        "x": random_codes(1, ic, h, w),
        "scale_in": 0.02,
        "zero_point_in": 3,
        "weight": rng.integers(-127, 128, (oc, ic), dtype=np.int8),
        "weight_sums": np.zeros(oc, np.int32),
        "weight_scales": rng.uniform(1e-3, 2e-3, oc).astype(np.float32),
        "scale_out": 0.02 * 1.5e-3 * 74 * 74 * ic**0.5 / 60,
        "zero_point_out": -5,
        "bias": rng.normal(0, 1, oc).astype(np.float32),
        "kernel": (1, 1),
        "stride": (1, 1),
        "padding": (0, 0),
        "dilation": (1, 1),
        "groups": 1,
        "activation": "none",
    }


def measure(device: Device) -> list[Row]:
    """Kernel time of each shape."""
    software = device.capabilities.software
    rows = []
    for h, w, ic, oc, targets in SHAPES["software" if software else "H200"]:
        sample, label, _ = kernel_times(
            device, "et_vk.q8ta_conv2d_pw.default", pointwise_arguments(h, w, ic, oc),
            constants=("weight", "weight_sums", "weight_scales", "bias"),
            rows=9 if software else 25,
        )  # fmt: skip
        operations = 2 * h * w * ic * oc
        plain = plain_pointwise(device, h * w, oc, ic)
        floor = _floor(device, h * w, oc, ic)
        for what, one, note in (
            ("q8ta_conv2d_pw", sample, label.split()[-1]),
            ("a plain kernel", plain, "four outputs a thread"),
        ):
            if one is None:
                continue
            ours = what.startswith("q8ta")
            rows.append(
                Row(
                    "pointwise", f"{what} {h}x{w}, {ic} -> {oc}", one.median * 1e6, "us", one,
                    floor=floor, target=targets.of(device) if ours else "",
                    note=f"{_rate(operations, one.median)}; {note}",
                )
            )  # fmt: skip
    return rows


def _floor(device: Device, m: int, n: int, k: int) -> str:
    if device.capabilities.software:
        return ""
    rate = MATRIX_RATE["int8"] if device.capabilities.matrix_units else PACKED_DOT_RATE
    least = max(2 * m * n * k / rate, (m * k + n * k + m * n) / MEMORY_RATE)
    return f"{least * 1e6:.3g} us"


def _rate(operations: int, seconds: float) -> str:
    """Operations a second in words; Dawn's timestamps have steps of 0.1 ms."""
    return f"{operations / seconds / 1e12:.4g} TOP/s" if seconds else "below the timer's step"
