"""What every benchmark shares: the machine's description, statistics, rows, and the table."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from nybble.contract import REGISTRY, Array
from nybble.devices import Device
from nybble.devices.base import TimedExecutable
from nybble.graph import Call, single_call
from nybble.plan import make_plan

__all__ = [
    "MATRIX_RATE",
    "MEMORY_RATE",
    "Row",
    "Sample",
    "Targets",
    "environment",
    "is_part_of",
    "keep_busy",
    "kernel_times",
    "row_times",
    "save",
    "show",
    "step_times",
    "timed",
]  # fmt: skip

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"
WARM_SECONDS = 1.0
"""An H200's memory is slow for some tenths of a second once work begins: see bench/NOTES.md."""
ROW_SECONDS = 1e-3
"""How long dispatches are repeated in a row between two timestamps."""
MEMORY_RATE = 4.2e12
"""Bytes a second that an H200 copies, read and written counted."""
MATRIX_RATE = {"int8": 1979e12, "float16": 989e12}
"""Operations a second of an H200's matrix units, by the type of the factors."""


@dataclass(frozen=True)
class Sample:
    """Seconds of repeated runs."""

    median: float
    least: float
    most: float
    runs: int

    @staticmethod
    def of(seconds: Sequence[float]) -> Sample:
        """The statistics of a list of times."""
        return Sample(statistics.median(seconds), min(seconds), max(seconds), len(seconds))


@dataclass(frozen=True)
class Row:
    """One measured figure. ``value`` is in ``unit``; ``floor`` is the least or most possible."""

    task: str
    what: str
    value: float
    unit: str
    sample: Sample | None = None
    floor: str = ""
    target: str = ""
    note: str = ""
    shape: str = field(default="")


@dataclass(frozen=True)
class Targets:
    """What was asked of a figure: of any adapter that is a processor, and of a GPU by its API."""

    software: str = ""
    webgpu: str = ""
    vulkan: str = ""

    def of(self, device: Device) -> str:
        """The target of this device; empty where there is none."""
        if device.capabilities.software:
            return self.software
        return self.vulkan if device.info.name.startswith("vulkan") else self.webgpu


def environment(device: Device) -> dict[str, str]:
    """The adapter, the machine, and the versions that a figure depends on."""
    packages = ("nybble", "wgpu", "wgpudawn", "vulkan", "numpy", "torch")
    found = {}
    for name in packages:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "device": str(device.info),
        "driver": device.info.driver,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        **found,
    }


def timed(function: Callable[[], Any], *, seconds: float = 2.0, least: int = 7) -> Sample:
    """Wall times of ``function``: at least ``least`` runs and about ``seconds`` in all."""
    function()
    runs: list[float] = []
    begin = time.perf_counter()
    while len(runs) < least or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        function()
        runs.append(time.perf_counter() - start)
        if len(runs) >= 1000:
            break
    return Sample.of(runs)


def kernel_times(
    device: Any,
    operator: str,
    arguments: dict[str, Any],
    *,
    constants: tuple[str, ...] = (),
    kernel: int | None = None,
    rows: int = 15,
) -> tuple[Sample, str, list[Array]]:
    """GPU times of the one dispatch of a call, its label, and the call's results.

    Every repeat writes the same result, so each waits for the one before.
    """
    graph, inputs = single_call(REGISTRY[operator], arguments, constants)
    forced = {} if kernel is None else {graph.calls[0]: REGISTRY[operator].kernels[kernel]}
    plan = make_plan(graph, device.capabilities, forced=forced)
    executable = device.prepare(plan)
    try:
        results = executable.run(inputs)
        steps = [i for i, s in enumerate(plan.steps) if is_part_of(operator, plan.calls[s.call])]
        sample = step_times(executable, steps, rows)
        return sample, plan.steps[steps[0]].label, results
    finally:
        executable.close()


def is_part_of(operator: str, call: Call) -> bool:
    """Whether a plan's call stands for one of an operator, alone or with others."""
    return (call.source or call).operator.name == operator


def step_times(executable: TimedExecutable, steps: Sequence[int], rows: int) -> Sample:
    """GPU times of some dispatches of a plan together, once the clocks have risen from idle.

    A row repeats them for about ROW_SECONDS, and its time is divided by the repeats: the cost of
    a compute pass and of its timestamps, which a program pays once, does not count, the wait of a
    dispatch for the one before does where a program has it. Statistics are over the rows.
    """
    return row_times(lambda repeats, count: executable.time_steps(steps, repeats, count), rows)


def row_times(measure: Callable[[int, int], list[float]], rows: int) -> Sample:
    """Times by ``measure(repeats, rows)``, with the repeats that make a row long enough."""
    keep_busy(lambda: measure(1, 1))
    once = max(min(measure(1, 3)), 1e-6)
    return Sample.of(measure(max(1, min(256, int(ROW_SECONDS / once))), rows))


def keep_busy(work: Callable[[], Any]) -> None:
    """Repeat ``work`` for WARM_SECONDS.

    A GPU left alone for some milliseconds clocks down, and a short kernel then shows the clock
    of an idle one (bench/NOTES.md, "A card that was idle").
    """
    begin = time.perf_counter()
    while time.perf_counter() - begin < WARM_SECONDS:
        work()


def show(rows: Sequence[Row], facts: dict[str, str]) -> None:
    """Print the environment and the rows."""
    console = Console(width=150)
    for key, value in facts.items():
        console.print(f"{key:8s} {value}", highlight=False)
    table = Table()
    for column in ("task", "what", "value", "least .. most", "floor", "target", "note"):
        table.add_column(column)
    for row in rows:
        spread = ""
        if row.sample is not None:
            spread = f"{row.sample.least * 1e3:.4g} .. {row.sample.most * 1e3:.4g} ms"
        table.add_row(
            row.task,
            row.what,
            f"{row.value:.4g} {row.unit}",
            spread,
            row.floor,
            row.target,
            row.note,
        )
    console.print(table)


def save(name: str, rows: Sequence[Row], facts: dict[str, str]) -> Path:
    """Write the rows as JSON under ``bench/results``; :mod:`bench.report` reads them."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    data = {
        "date": time.strftime("%Y-%m-%d"),
        "environment": facts,
        "rows": [asdict(row) for row in rows],
    }
    path.write_text(json.dumps(data, indent=1) + "\n")
    return path


def random_codes(*shape: int, seed: int = 0) -> Array:
    """Full-range int8 codes."""
    return np.random.default_rng(seed).integers(-128, 128, shape, dtype=np.int8)
