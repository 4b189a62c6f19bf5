"""quantize_per_tensor and its inverse on one large tensor, beside a plain kernel and a copy.

Floor: each element is read once (4 bytes) and written once (1 byte) at the adapter's copy rate,
measured where plain kernels run. Timed in a row: see bench.common.step_times.
"""

from __future__ import annotations

import numpy as np

from bench.common import MEMORY_RATE, Row, Targets, kernel_times, random_codes
from bench.plain import copy_rate, plain_quantize
from nybble.devices import Device

__all__ = ["measure"]

TARGETS = Targets(software=">= 2 GB/s", webgpu=">= 3400 GB/s", vulkan=">= 3400 GB/s")
NAME = "quantized_decomposed.{}_per_tensor.default"


def measure(device: Device) -> list[Row]:
    """Bytes a second of both directions."""
    software = device.capabilities.software
    count = 16 << 20 if software else 268_435_456
    attributes = {"scale": 0.05, "zero_point": 3, "quant_min": -128, "quant_max": 127}
    values = np.random.default_rng(0).standard_normal(count, dtype=np.float32)
    values *= 4
    copied = copy_rate(device, count * 4)
    rate = MEMORY_RATE / 1e9 if copied is None else copied.value
    floor = "" if software and copied is None else f"{rate:.4g} GB/s"
    rows = []
    if copied is not None:
        what = f"copy of {count * 4:,} bytes"
        rows.append(Row("quantize", what, copied.value, "GB/s", copied.sample))
    for kind, x in (("quantize", values), ("dequantize", random_codes(count))):
        sample, label, _ = kernel_times(device, NAME.format(kind), {"x": x, **attributes}, rows=15)
        rate = 5 * count / sample.median / 1e9
        rows.append(
            Row(
                "quantize", f"{kind}_per_tensor, {count:,} elements", rate, "GB/s", sample,
                floor=floor, target=TARGETS.of(device) if kind == "quantize" else "",
                note=label.split()[-1],
            )
        )  # fmt: skip
    plain = plain_quantize(device, values)
    if plain is not None:
        rate = 5 * count / plain.median / 1e9
        rows.append(Row("quantize", "a plain kernel, one word a thread", rate, "GB/s", plain))
    return rows
