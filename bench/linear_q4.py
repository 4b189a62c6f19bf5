"""4-bit linear layers, their gradients and re-quantization, kernel time.

Floors: a matrix-vector product reads every code once, at 4.2 TB/s on an H200, of which several
copies of the weight take turns so that no cache serves them; a matrix product runs at 67 TFLOP/s
of float32; re-quantization reads 4 bytes and writes half a byte an element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.common import Row, Sample, dispatch_times
from nybble.contract import REGISTRY, Array
from nybble.devices import Device
from nybble.graph import single_call
from nybble.ops.linear_q4.reference import dequantized
from nybble.plan import make_plan

__all__ = ["measure"]

MEMORY_RATE = 4.2e12
FLOAT_RATE = 67e12
CACHE = 100e6
"""Bytes of weights that take turns: twice an H200's second-level cache."""
GROUP = 32
PRODUCTS = {
    "H200": [
        (1, 8192, 8192, "<= 16 us"), (1, 8192, 2048, "<= 7.5 us"), (4, 8192, 8192, ""),
        (128, 8192, 8192, "<= 600 us"), (256, 4096, 4096, ""),
    ],
    "software": [
        (1, 8192, 2048, "<= 15 ms"), (4, 8192, 2048, ""), (128, 2048, 2048, "<= 200 ms"),
    ],
}  # fmt: skip


def product_arguments(m: int, n: int, k: int, seed: int = 0) -> dict[str, Any]:
    """Random arguments of ``et_vk.linear_q4gsw.default``."""
    rng = np.random.default_rng(seed)
    return {
        "x": rng.standard_normal((m, k), dtype=np.float32),
        "weight": rng.integers(0, 256, (n, k // 2), dtype=np.uint8),
        "scales": rng.uniform(0.01, 0.1, (k // GROUP, n)).astype(np.float32),
        "group_size": GROUP,
        "bias": None,
    }


def _rotated_times(
    device: Any, operator: str, calls: Sequence[dict[str, Any]], constants: tuple[str, ...]
) -> tuple[Sample, str, list[Array]]:
    """GPU times of one dispatch while several calls take turns; label and results of the last."""
    executables, prepared = [], []
    label, results = "", []
    try:
        for arguments in calls:
            graph, inputs = single_call(REGISTRY[operator], arguments, constants)
            plan = make_plan(graph, device.capabilities)
            executable = device.prepare(plan)
            executables.append(executable)
            results = executable.run(inputs)
            step = next(
                i for i, s in enumerate(plan.steps) if plan.calls[s.call].operator.name == operator
            )
            prepared.append(executable.prepared[step])
            label = plan.steps[step].label
        repeats = 5 if device.capabilities.software else max(4, 48 // len(calls))
        total = dispatch_times(device, prepared, repeats)
    finally:
        for executable in executables:
            executable.close()
    count = len(calls)
    sample = Sample(total.median / count, total.least / count, total.most / count, total.runs)
    return sample, label, results


def _error(arguments: dict[str, Any], result: Array) -> float:
    """Largest error of 64 columns against float64, relative to their root mean square."""
    columns = np.random.default_rng(1).choice(result.shape[-1], 64, replace=False)
    x = arguments["x"]
    matrix = dequantized(
        arguments["weight"][columns], arguments["scales"][:, columns], GROUP, x.shape[-1]
    )
    expected = x.astype(np.float64) @ matrix.T.astype(np.float64)
    difference = np.abs(result[..., columns] - expected).max()
    return float(difference / np.sqrt(np.mean(expected**2)))


def _products(device: Device) -> list[Row]:
    software = device.capabilities.software
    rows = []
    for m, n, k, target in PRODUCTS["software" if software else "H200"]:
        nbytes = n * k // 2 + n * k // GROUP * 4
        copies = 1 if software or m > 4 else int(-(-CACHE // nbytes))
        calls = [product_arguments(m, n, k, seed) for seed in range(copies)]
        sample, label, results = _rotated_times(
            device, "et_vk.linear_q4gsw.default", calls, ("weight", "scales")
        )
        least = max(nbytes / MEMORY_RATE, 2 * m * n * k / FLOAT_RATE)
        rows.append(
            Row(
                "linear_q4", f"linear_q4gsw M={m}, N={n}, K={k}", sample.median * 1e6, "us", sample,
                floor="" if software else f"{least * 1e6:.3g} us", target=target,
                note=f"{2 * m * n * k / sample.median / 1e12:.3g} TFLOP/s, "
                f"error {_error(calls[-1], results[0]):.1e}; {label.split()[-1]}",
            )
        )  # fmt: skip
    return rows


def _gradients(device: Device) -> list[Row]:
    m, n, k = (32, 512, 512) if device.capabilities.software else (256, 4096, 4096)
    given = product_arguments(m, n, k)
    d_out = np.random.default_rng(2).standard_normal((m, n), dtype=np.float32)
    backward = {key: given[key] for key in ("weight", "scales", "group_size")}
    rows = []
    for name, arguments in (
        ("linear_q4gsw_backward", {"d_out": d_out, **backward}),
        ("linear_dW", {"d_out": d_out, "x": given["x"]}),
    ):
        sample, label, _ = _rotated_times(
            device, f"et_vk.{name}.default", [arguments], ("weight", "scales")
        )
        rows.append(
            Row(
                "linear_q4", f"{name} M={m}, N={n}, K={k}", sample.median * 1e6, "us", sample,
                note=f"{2 * m * n * k / sample.median / 1e12:.3g} TFLOP/s; {label.split()[-1]}",
            )
        )  # fmt: skip
    return rows


def _requant(device: Device) -> Row:
    software = device.capabilities.software
    n = k = 1024 if software else 8192
    rng = np.random.default_rng(3)
    arguments = {
        "latent": rng.standard_normal((n, k), dtype=np.float32) * np.float32(0.2),
        "scales": rng.uniform(0.01, 0.1, (k // GROUP, n)).astype(np.float32),
        "group_size": GROUP,
    }
    sample, label, _ = _rotated_times(device, "et_vk.q4gsw_requant.default", [arguments], ())
    rate = 4.5 * n * k / sample.median
    return Row(
        "linear_q4", f"q4gsw_requant N={n}, K={k}", rate / 1e9, "GB/s", sample,
        floor="" if software else f"{MEMORY_RATE / 1e9:.4g} GB/s",
        target="" if software else ">= 3000 GB/s", note=label.split()[-1],
    )  # fmt: skip


def measure(device: Device) -> list[Row]:
    """Kernel time of each shape."""
    return [*_products(device), *_gradients(device), _requant(device)]
