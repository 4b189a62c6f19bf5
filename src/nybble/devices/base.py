"""What a device offers: replay a plan. It knows buffers, pipelines and dispatches, no operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from nybble.contract import Array
from nybble.errors import ContractError
from nybble.graph import Call
from nybble.plan import Capabilities, Plan

__all__ = ["Device", "DeviceInfo", "Executable", "Timing", "run_reference"]


@dataclass(frozen=True)
class DeviceInfo:
    """A device that :func:`nybble.load` accepts by ``name``."""

    name: str
    adapter: str
    backend: str
    kind: str
    driver: str
    limits: Mapping[str, int] = field(default_factory=dict, repr=False)
    features: tuple[str, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        return f"{self.name}: {self.adapter} ({self.backend}, {self.kind})"


@dataclass(frozen=True)
class Timing:
    """Seconds that one step of a plan took; ``on_host`` where the reference ran it."""

    step: int
    seconds: float
    start: float
    on_host: bool


class Executable(Protocol):
    """A plan made ready on a device: pipelines, buffers and bindings exist."""

    plan: Plan

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs for inputs that already have the plan's types."""
        ...

    def trace(self, inputs: Sequence[Array]) -> list[tuple[Array, ...]]:
        """Results of every call; the plan must keep all values."""
        ...

    def profile(self, inputs: Sequence[Array], repeats: int) -> list[Timing]:
        """Median time of each step over ``repeats`` runs."""
        ...

    def close(self) -> None:
        """Free what the device holds for this plan."""
        ...


class Device(Protocol):
    """Where plans run."""

    info: DeviceInfo
    capabilities: Capabilities

    def prepare(self, plan: Plan) -> Executable:
        """Make a plan ready to run."""
        ...


def run_reference(call: Call, tensors: Mapping[str, Array]) -> tuple[Array, ...]:
    """Results of a call's numpy reference.

    Args:
        call: the call; its constants are used as they are.
        tensors: the arrays of the other tensor arguments, by name.

    Raises:
        ContractError: the reference's result has another type than the contract derives.
    """
    arguments = dict(call.arguments)
    for name, value in call.inputs.items():
        arguments[name] = value.constant if value.constant is not None else tensors[name]
    results = call.operator.reference(**arguments)
    if not isinstance(results, tuple):
        results = (results,)
    for result, value in zip(results, call.outputs, strict=True):
        if result.dtype != value.dtype.numpy or tuple(result.shape) != value.shape:
            raise ContractError(
                f"{call.operator.name}: its reference gave {result.dtype}{list(result.shape)}, "
                f"the contract says {value}"
            )
    return tuple(np.asarray(result) for result in results)
