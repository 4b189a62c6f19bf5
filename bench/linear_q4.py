"""4-bit linear layers, their gradients and re-quantization, kernel time.

Floors: a matrix-vector product reads every code and scale once, at 4.2 TB/s on an H200; a matrix
product runs at 67 TFLOP/s of float32, or at the rate of the matrix units where the API shows them;
re-quantization reads 4 bytes and writes half a byte an element.

Several weights of one row take turns, codes and scales, so that no cache serves them. A second
figure is for codes alone that take turns, one table of scales for all: so does
shared/tools/gemv_q4.py, with which the targets were set.

Timed in a row (bench.common.step_times). The copies' results lie in one buffer, so each dispatch
waits for the one before as in a program whose layers follow each other; this is checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.common import MATRIX_RATE, MEMORY_RATE, Row, Sample, Targets, is_part_of, step_times
from nybble.contract import Array
from nybble.devices import Device
from nybble.devices.vulkan.hazards import barriers_before
from nybble.graph import Graph, GraphBuilder
from nybble.ops.linear_q4.reference import dequantized
from nybble.plan import Dispatch, HostCall, make_plan

__all__ = ["measure"]

FLOAT_RATE = 67e12
TURNS = {"codes and scales": 100e6, "codes": 300e6}
"""What takes turns, and its bytes in all: at least twice an H200's second-level cache."""
GROUP = 32
PRODUCTS = {
    "H200": [
        (1, 8192, 8192, Targets(webgpu="<= 16 us", vulkan="<= 13 us")),
        (1, 8192, 2048, Targets(webgpu="<= 7.5 us")),
        (4, 8192, 8192, Targets()),
        (128, 8192, 8192, Targets(webgpu="<= 600 us", vulkan="<= 120 us")),
        (256, 4096, 4096, Targets()),
    ],
    "software": [
        (1, 8192, 2048, Targets(software="<= 15 ms")),
        (4, 8192, 2048, Targets()),
        (128, 2048, 2048, Targets(software="<= 200 ms")),
    ],
}
REQUANT = Targets(webgpu=">= 3000 GB/s", vulkan=">= 3000 GB/s")


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


def _turns(
    operator: str, calls: Sequence[dict[str, Any]], constants: tuple[str, ...]
) -> tuple[Graph, list[Array]]:
    """A graph that calls an operator several times with constants of their own; what to feed it.

    Tensors that are not constants are inputs, those of the first call, for all. The last result
    alone is an output: the planner gives the others, which nobody reads, the same buffer.
    """
    b = GraphBuilder("turns")
    fed = {
        name: array
        for name, array in calls[0].items()
        if isinstance(array, np.ndarray) and name not in constants
    }
    inputs = {name: b.input(name, str(array.dtype), array.shape) for name, array in fed.items()}
    results = [b.call(operator, **{**arguments, **inputs}) for arguments in calls]
    return b.finish(results[-1:]), list(fed.values())


def _rotated_times(
    device: Any, operator: str, calls: Sequence[dict[str, Any]], constants: tuple[str, ...]
) -> tuple[Sample, str, list[Array]]:
    """GPU times of one call while several take turns; label and results of the last."""
    graph, inputs = _turns(operator, calls, constants)
    plan = make_plan(graph, device.capabilities)
    executable = device.prepare(plan)
    try:
        results = executable.run(inputs)
        steps = [i for i, s in enumerate(plan.steps) if is_part_of(operator, plan.calls[s.call])]
        _check_that_each_waits([plan.steps[i] for i in steps])
        total = step_times(executable, steps, 5 if device.capabilities.software else 25)
    finally:
        executable.close()
    count = len(calls)
    sample = Sample(total.median / count, total.least / count, total.most / count, total.runs)
    return sample, plan.steps[steps[-1]].label, results


def _check_that_each_waits(steps: Sequence[Dispatch | HostCall]) -> None:
    """In a row of these dispatches every one has a barrier before it, as every API decides."""
    waits = barriers_before([step for step in steps if isinstance(step, Dispatch)] * 2)
    if not all(waits[1:]):
        raise RuntimeError(f"expected dispatches that wait for each other, received {waits}")


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
    for m, n, k, targets in PRODUCTS["software" if software else "H200"]:
        if software or m > 4:
            rows.append(_product(device, (m, n, k), targets))
        else:
            rows += [_product(device, (m, n, k), targets, turns) for turns in TURNS]
    return rows


def _product(
    device: Device, shape: tuple[int, int, int], targets: Targets, turns: str | None = None
) -> Row:
    """A product's figure, of one weight or of some that take turns."""
    m, n, k = shape
    codes, scales = n * k // 2, n * k // GROUP * 4
    whole = turns != "codes"
    copies = int(-(-TURNS[turns] // (codes + scales if whole else codes))) if turns else 1
    calls = [product_arguments(m, n, k, seed) for seed in range(copies)]
    shared = ("x",) if whole else ("x", "scales")
    calls = [{**call, **{name: calls[0][name] for name in shared}} for call in calls]
    sample, label, results = _rotated_times(
        device, "et_vk.linear_q4gsw.default", calls, ("weight", "scales") if whole else ("weight",)
    )
    rate = MATRIX_RATE["float16"] if device.capabilities.matrix_units else FLOAT_RATE
    least = max((codes + scales) / MEMORY_RATE, 2 * m * n * k / rate)
    return Row(
        "linear_q4",
        f"linear_q4gsw M={m}, N={n}, K={k}" + ("" if whole else ", codes alone take turns"),
        sample.median * 1e6, "us", sample,
        floor="" if device.capabilities.software else f"{least * 1e6:.3g} us",
        target=targets.of(device),
        note=f"{2 * m * n * k / sample.median / 1e12:.3g} TFLOP/s, "
        f"error {_error(calls[-1], results[0]):.1e}; {label.split()[-1]}",
    )  # fmt: skip


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
        target=REQUANT.of(device), note=label.split()[-1],
    )  # fmt: skip


def measure(device: Device) -> list[Row]:
    """Kernel time of each shape."""
    return [*_products(device), *_gradients(device), _requant(device)]
