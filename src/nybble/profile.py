"""Where the time goes: each dispatch beside the bytes and operations it had to move."""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from nybble.contract import Array
from nybble.devices import Device, Executable
from nybble.plan import Dispatch, Plan
from nybble.report_text import Words, call_shapes, new_table, short_name, short_shapes, table_text

if TYPE_CHECKING:
    from rich.console import JustifyMethod

__all__ = ["Profile", "ProfileRow", "profile_method"]


@dataclass(frozen=True)
class ProfileRow:
    """One step: its time in seconds, its least bytes and its operations."""

    label: str
    shapes: str
    seconds: float
    start: float
    bytes_moved: int
    operations: int
    on_host: bool

    @property
    def bandwidth(self) -> float:
        """Bytes a second."""
        return self.bytes_moved / self.seconds if self.seconds else 0.0

    @property
    def rate(self) -> float:
        """Operations a second."""
        return self.operations / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class Profile:
    """Times of a method. ``call_seconds`` is the whole call: copies, encoding, all kernels."""

    method: str
    device: str
    rows: tuple[ProfileRow, ...]
    call_seconds: float
    device_bytes: int

    @property
    def kernel_seconds(self) -> float:
        """Sum over the steps."""
        return sum(row.seconds for row in self.rows)

    @property
    def summary(self) -> str:
        """One line: the whole call, its kernels, and the memory that it takes."""
        return (
            f"{self.method} on {self.device}: whole call {self.call_seconds * 1e3:.3f} ms, "
            f"kernels {self.kernel_seconds * 1e3:.3f} ms, {self.device_bytes / 1e6:.2f} MB"
        )

    def __repr__(self) -> str:
        return f"<Profile of {self.summary}>"

    def table(self) -> Table:
        """A row for each step, and the sums."""
        table = new_table(self.summary)
        for column in ("#", "step", "shapes", "us", "share", "KB", "GB/s", "Mop", "Gop/s"):
            left = column in ("step", "shapes")
            justify: JustifyMethod = "left" if left else "right"
            table.add_column(column, justify=justify, no_wrap=not left)
        total = self.kernel_seconds or 1.0
        for number, row in enumerate(self.rows):
            table.add_row(
                str(number),
                Words(f"{short_name(row.label)} (host)", "yellow")
                if row.on_host
                else Words(short_name(row.label)),
                Words(short_shapes(row.shapes)),
                _short(row.seconds * 1e6, 1),
                f"{row.seconds / total:.0%}",
                _short(row.bytes_moved / 1e3, 1),
                _short(row.bandwidth / 1e9, 2),
                _short(row.operations / 1e6, 2),
                _short(row.rate / 1e9, 2),
            )
        return table

    def __str__(self) -> str:
        return table_text(self.table())

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the steps as a trace that Perfetto (ui.perfetto.dev) opens."""
        events = [
            {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": self.device}},
            *(
                {
                    "name": row.label,
                    "cat": "host" if row.on_host else "kernel",
                    "ph": "X",
                    "ts": row.start * 1e6,
                    "dur": row.seconds * 1e6,
                    "pid": 1,
                    "tid": 2 if row.on_host else 1,
                    "args": {
                        "shapes": row.shapes,
                        "bytes": row.bytes_moved,
                        "operations": row.operations,
                        "GB/s": row.bandwidth / 1e9,
                    },
                }
                for row in self.rows
            ),
        ]
        Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}))


def _short(number: float, decimals: int) -> str:
    """A number of about four digits: large ones need no decimals, and columns have no room."""
    digits = len(str(int(number)))
    return f"{number:,.{max(0, min(decimals, 4 - digits))}f}"


def profile_method(
    device: Device, executable: Executable, inputs: Sequence[Array], repeats: int
) -> Profile:
    """Median times over ``repeats`` runs after one to warm up."""
    executable.run(inputs)
    calls = []
    for _ in range(repeats):
        start = time.perf_counter()
        executable.run(inputs)
        calls.append(time.perf_counter() - start)
    plan = executable.plan
    timings = executable.profile(inputs, repeats)
    rows = tuple(
        _row(plan, timing.step, timing.seconds, timing.start, timing.on_host) for timing in timings
    )
    return Profile(plan.name, device.info.name, rows, statistics.median(calls), plan.device_bytes)


def _row(plan: Plan, index: int, seconds: float, start: float, on_host: bool) -> ProfileRow:
    step = plan.steps[index]
    call = plan.calls[step.call]
    shapes = call_shapes(call)
    if isinstance(step, Dispatch):
        moved, operations = step.bytes_moved, step.operations
    else:
        moved = sum(place.nbytes for place in (*step.reads.values(), *step.writes))
        constants = (value.constant for value in call.inputs.values())
        moved += sum(constant.nbytes for constant in constants if constant is not None)
        operations = int(call.operator.operations.evaluate(call.bound.names))
    return ProfileRow(step.label, shapes, seconds, start, moved, operations, on_host)
