"""The host: runs the numpy references. Oracle, fallback, and the device of a machine without GPU."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Sequence

import numpy as np

from nybble.contract import Array
from nybble.graph import Value
from nybble.plan import Capabilities, Plan

from .base import DeviceInfo, Timing, run_reference

__all__ = ["HostDevice"]


class HostDevice:
    """Runs every call's reference."""

    def __init__(self) -> None:
        self.info = DeviceInfo(
            name="host",
            adapter=platform.processor() or platform.machine(),
            backend=f"numpy {np.__version__}",
            kind="cpu",
            driver="numpy references",
        )
        self.capabilities = Capabilities(kernels=False)

    def prepare(self, plan: Plan) -> HostExecutable:
        """Nothing to make ready."""
        return HostExecutable(plan)


class HostExecutable:
    """A plan on the host: values by name, calls in order."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs of the references."""
        values: dict[Value, Array] = {}
        self._run(inputs, values)
        return [_lookup(place.value, values) for place in self.plan.outputs]

    def trace(self, inputs: Sequence[Array]) -> list[tuple[Array, ...]]:
        """Results of every call."""
        values: dict[Value, Array] = {}
        self._run(inputs, values)
        return [tuple(values[value] for value in call.outputs) for call in self.plan.calls]

    def profile(self, inputs: Sequence[Array], repeats: int) -> list[Timing]:
        """Median wall time of each reference."""
        runs = [self._run(inputs, {}) for _ in range(repeats)]
        columns = list(zip(*runs, strict=True))
        seconds = [statistics.median(t for _, t in column) for column in columns]
        start = [column[0][0] for column in columns]
        return [Timing(i, s, t, True) for i, (s, t) in enumerate(zip(seconds, start, strict=True))]

    def close(self) -> None:
        """Nothing is held."""

    def _run(
        self, inputs: Sequence[Array], values: dict[Value, Array]
    ) -> list[tuple[float, float]]:
        values.update(
            (place.value, array) for place, array in zip(self.plan.inputs, inputs, strict=True)
        )
        begin = time.perf_counter()
        times = []
        for call in self.plan.calls:
            start = time.perf_counter()
            tensors = {n: values[v] for n, v in call.inputs.items() if v.constant is None}
            values.update(zip(call.outputs, run_reference(call, tensors), strict=True))
            times.append((start - begin, time.perf_counter() - start))
        return times


def _lookup(value: Value, values: dict[Value, Array]) -> Array:
    return value.constant if value.constant is not None else values[value]
