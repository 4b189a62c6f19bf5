"""The same work in torch on CUDA, in the same run on the same card; nothing without CUDA."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

from bench.common import Row, Sample
from nybble.devices import Device

__all__ = ["cuda_sample", "measure"]


def measure(device: Device) -> list[Row]:
    """Copy, quantize and int8 products by torch."""
    if device.capabilities.software or importlib.util.find_spec("torch") is None:
        return []
    import torch

    if not torch.cuda.is_available():
        return []
    return [*_streams(torch), *_products(torch)]


def cuda_sample(torch: Any, function: Callable[[], Any], repeats: int = 30) -> Sample:
    """Seconds of ``function`` on the GPU, by CUDA's events."""
    for _ in range(3):
        function()
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        function()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    return Sample.of(times)


def _streams(torch: Any) -> list[Row]:
    count = 268_435_456
    x = torch.randn(count, device="cuda") * 4
    y = torch.empty_like(x)

    def quantize(values: Any) -> Any:
        return torch.clamp(torch.round(values * 20.0) + 3, -128, 127).to(torch.int8)

    copied = cuda_sample(torch, lambda: y.copy_(x))
    rows = [Row("torch CUDA", "copy", 8 * count / copied.median / 1e9, "GB/s", copied)]
    try:
        compiled = torch.compile(quantize)
        sample = cuda_sample(torch, lambda: compiled(x))
        rows.append(Row("torch CUDA", "quantize, torch.compile", 5 * count / sample.median / 1e9,
                        "GB/s", sample))  # fmt: skip
    except Exception as error:  # noqa: BLE001 (torch.compile fails in many ways; say which)
        rows.append(
            Row("torch CUDA", "quantize, torch.compile", 0.0, "GB/s", note=repr(error)[:60])
        )
    return rows


def _products(torch: Any) -> list[Row]:
    rows = []
    for m, k, n in ((4096, 4096, 4096), (3136, 256, 256)):
        a = torch.randint(-128, 128, (m, k), dtype=torch.int8, device="cuda")
        b = torch.randint(-128, 128, (n, k), dtype=torch.int8, device="cuda").t()
        sample = cuda_sample(torch, partial(torch._int_mm, a, b), 50)
        rate = 2 * m * n * k / sample.median / 1e12
        rows.append(Row("torch CUDA", f"_int_mm {m}x{k}x{n} (cuBLASLt, int32 out)",
                        sample.median * 1e6, "us", sample, note=f"{rate:.4g} TOP/s"))  # fmt: skip
    return rows
