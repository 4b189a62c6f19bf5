"""What decides the size of a step: AdamW and learning rate schedules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from nybble.arguments import is_number
from nybble.contract import Array
from nybble.errors import ContractError

__all__ = ["AdamW", "Constant", "Cosine", "Linear", "Schedule", "hyper_table"]


@dataclass(frozen=True)
class AdamW:
    """Adam with decoupled weight decay, as ``torch.optim.AdamW``.

    Args:
        lr: learning rate, not negative.
        betas: decay of the two moments, each in [0, 1).
        eps: added to the root of the second moment.
        weight_decay: share of a weight that a step of learning rate 1 takes away.

    Raises:
        ContractError: a value outside its range.
    """

    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.01

    def __post_init__(self) -> None:
        for name in ("lr", "eps", "weight_decay"):
            value = getattr(self, name)
            if not (is_number(value) and value >= 0):
                raise ContractError(f"AdamW: expected {name} >= 0, received {value!r}")
        pair = isinstance(self.betas, Sequence) and len(self.betas) == 2
        if not pair or not all(is_number(beta) and 0 <= beta < 1 for beta in self.betas):
            raise ContractError(
                f"AdamW: expected betas of two numbers in [0, 1), received {self.betas!r}"
            )

    def values(self, step: int, factor: float) -> tuple[float, ...]:
        """The hyper-parameters of step ``step`` (from 1), the learning rate times ``factor``."""
        beta1, beta2 = self.betas
        rest = (1 - beta1, 1 - beta2)
        corrections = (1 - beta1**step, 1 - beta2**step)
        return (
            self.lr * factor, beta1, beta2, *rest, self.eps, self.weight_decay, *corrections
        )  # fmt: skip


class Schedule(Protocol):
    """Factors of the learning rate."""

    def factor(self, step: int) -> float:
        """The factor of step ``step``, counted from 1 over applied steps."""
        ...


def _warm(step: int, warmup: int) -> float:
    return min(1.0, step / warmup) if warmup else 1.0


def _check(name: str, warmup: int, steps: int | None, final: float) -> None:
    numbers = [warmup, final, *([] if name == "Constant" else [steps])]
    fits = (
        all(map(is_number, numbers))
        and warmup >= 0
        and (steps is None or steps >= max(1, warmup))
        and 0 <= final <= 1
    )
    if not fits:
        raise ContractError(
            f"{name}: expected 0 <= warmup <= steps and final in [0, 1], received "
            f"warmup={warmup!r}, steps={steps!r}, final={final!r}"
        )


@dataclass(frozen=True)
class Constant:
    """The full rate after ``warmup`` steps that rise to it linearly."""

    warmup: int = 0

    def __post_init__(self) -> None:
        _check("Constant", self.warmup, None, 0)

    def factor(self, step: int) -> float:
        """The factor of step ``step``."""
        return _warm(step, self.warmup)


@dataclass(frozen=True)
class Linear:
    """A linear fall from the full rate at ``warmup`` to ``final`` of it at ``steps``."""

    steps: int
    warmup: int = 0
    final: float = 0.0

    def __post_init__(self) -> None:
        _check("Linear", self.warmup, self.steps, self.final)

    def factor(self, step: int) -> float:
        """The factor of step ``step``."""
        if step <= self.warmup:
            return _warm(step, self.warmup)
        done = min(1.0, (step - self.warmup) / max(1, self.steps - self.warmup))
        return 1 + (self.final - 1) * done


@dataclass(frozen=True)
class Cosine:
    """Half a cosine from the full rate at ``warmup`` to ``final`` of it at ``steps``."""

    steps: int
    warmup: int = 0
    final: float = 0.0

    def __post_init__(self) -> None:
        _check("Cosine", self.warmup, self.steps, self.final)

    def factor(self, step: int) -> float:
        """The factor of step ``step``."""
        if step <= self.warmup:
            return _warm(step, self.warmup)
        done = min(1.0, (step - self.warmup) / max(1, self.steps - self.warmup))
        return self.final + (1 - self.final) * (1 + math.cos(math.pi * done)) / 2


def hyper_table(optimizer: AdamW, schedule: Schedule, applied: int, rows: int) -> Array:
    """The hyper-parameters of the ``rows`` steps after ``applied`` ones, float32 [rows, 9]."""
    steps = range(applied + 1, applied + 1 + rows)
    return np.array([optimizer.values(s, schedule.factor(s)) for s in steps], np.float32)
