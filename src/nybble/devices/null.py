"""Computes nothing: planning, memory and code generation are testable with no GPU at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nybble.contract import Array
from nybble.plan import Capabilities, Plan

from .base import DeviceInfo, States, Timing
from .host import HostPending, HostStates

__all__ = ["NullDevice"]


class NullDevice:
    """Takes any plan for the given capabilities and returns zeros."""

    def __init__(self, capabilities: Capabilities | None = None) -> None:
        self.info = DeviceInfo("null", "none", "null", "none", "computes nothing")
        self.capabilities = capabilities or Capabilities()
        self.has_timestamps = False

    def new_states(self) -> HostStates:
        """An empty set of states."""
        return HostStates()

    def prepare(self, plan: Plan, states: States | None = None) -> NullExecutable:
        """Nothing to make ready."""
        return NullExecutable(plan)


class NullExecutable:
    """Returns zeros of the right types."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def submit(self, inputs: Sequence[Array]) -> HostPending:
        """Zeros at once."""
        return HostPending(self.run(inputs))

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Zeros for every output."""
        return [np.zeros(p.value.shape, p.value.dtype.numpy) for p in self.plan.outputs]

    def trace(self, inputs: Sequence[Array]) -> list[tuple[Array, ...]]:
        """Zeros for every call's results."""
        return [
            tuple(np.zeros(v.shape, v.dtype.numpy) for v in call.outputs)
            for call in self.plan.calls
        ]

    def profile(self, inputs: Sequence[Array], repeats: int) -> list[Timing]:
        """Zero seconds for every step."""
        return [Timing(i, 0.0, 0.0, False) for i in range(len(self.plan.steps))]

    def adopt(self, plan: Plan) -> bool:
        """Any plan will do."""
        self.plan = plan
        return True

    def close(self) -> None:
        """Nothing is held."""
