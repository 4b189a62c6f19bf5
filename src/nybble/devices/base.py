"""What a device offers: replay a plan. It knows buffers, pipelines and dispatches, no operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from nybble.contract import Array, Layout
from nybble.errors import ContractError
from nybble.graph import Call
from nybble.plan import Capabilities, Dispatch, Place, Plan

__all__ = [
    "Device", "DeviceInfo", "Executable", "Pending", "States", "TimedExecutable", "Timing",
    "check_dispatches", "check_state", "run_reference",
]  # fmt: skip


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


class Pending(Protocol):
    """A run under way."""

    def result(self) -> list[Array]:
        """The outputs, waiting for the device if need be."""
        ...


class Executable(Protocol):
    """A plan made ready on a device: pipelines, buffers and bindings exist."""

    plan: Plan

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs for inputs that already have the plan's types."""
        ...

    def submit(self, inputs: Sequence[Array]) -> Pending:
        """Start a run without waiting for it."""
        ...

    def trace(self, inputs: Sequence[Array]) -> list[tuple[Array, ...]]:
        """Results of every call; the plan must keep all values."""
        ...

    def profile(self, inputs: Sequence[Array], repeats: int) -> list[Timing]:
        """Median time of each step over ``repeats`` runs."""
        ...

    def adopt(self, plan: Plan) -> bool:
        """Take a plan that differs in parameters and grids alone; False if it differs in more."""
        ...

    def close(self) -> None:
        """Free what the device holds for this plan."""
        ...


class TimedExecutable(Executable, Protocol):
    """An executable of a GPU, whose dispatches can be repeated and timed by themselves."""

    def time_steps(self, indices: Sequence[int], repeats: int, rows: int = 1) -> list[float]:
        """Seconds of steps run in a row as a program runs them, ``repeats`` times over.

        A row is ``repeats`` times the steps in the given order, with the barriers of a program
        that consists of them and a timestamp at either end: a step waits for the one before only
        where their buffers make it. An untimed row goes before the first.

        They work on what the last run left in the buffers, so run the plan before. What they
        change in place stays changed.

        Args:
            indices: positions in the plan's steps, all of them dispatches.
            repeats: how often a row repeats the steps.
            rows: how many rows are timed, without going back to the host between them.

        Returns:
            For each row the seconds of the steps together, divided by ``repeats``.

        Raises:
            ContractError: a step is not a dispatch.
        """
        ...


class States(Protocol):
    """Named values that stay on a device between runs, shared by the plans prepared with them."""

    def names(self) -> tuple[str, ...]:
        """The states' names."""
        ...

    def layouts(self) -> Mapping[str, Layout]:
        """The layout in which each lies."""
        ...

    def read(self, name: str) -> Array:
        """The content of a state."""
        ...

    def write(self, name: str, content: Array) -> None:
        """Replace the content of a state."""
        ...

    def close(self) -> None:
        """Free all states."""
        ...


class Device(Protocol):
    """Where plans run."""

    info: DeviceInfo
    capabilities: Capabilities
    has_timestamps: bool
    """Whether steps are timed where they run, and not from outside, with the way there and back."""

    def new_states(self) -> States:
        """An empty set of states."""
        ...

    def prepare(self, plan: Plan, states: States | None = None) -> Executable:
        """Make a plan ready to run; its states are looked up in, or added to, ``states``."""
        ...


def check_dispatches(plan: Plan, indices: Sequence[int]) -> Sequence[int]:
    """``indices``, all of which are dispatches of the plan.

    Raises:
        ContractError: a step runs on the host, or there is none of that number.
    """
    dispatches = {i for i, step in enumerate(plan.steps) if isinstance(step, Dispatch)}
    for index in indices:
        if index not in dispatches:
            raise ContractError(
                f"step {index} of method '{plan.name}': expected a dispatch to time, received "
                f"{'a call on the host' if index in range(len(plan.steps)) else 'no step'}; "
                f"its dispatches are {sorted(dispatches)}"
            )
    return indices


def check_state(name: str, place: Place, content: Array) -> Array:
    """``content`` as the state holds it.

    Raises:
        ContractError: another type or shape than the state's.
    """
    value = place.value
    if content.dtype != value.dtype.numpy or content.shape != value.shape:
        raise ContractError(
            f"state {name!r}: expected {value}, received {content.dtype}{list(content.shape)}"
        )
    return content


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
