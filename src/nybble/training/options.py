"""How a trainer was made."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Literal

from nybble.errors import ContractError

from .optimizer import AdamW, Schedule
from .pending import OnNonFinite

__all__ = ["Mode", "Options"]

Mode = Literal["latent", "adapter"]


@dataclass(frozen=True)
class Options:
    """How a trainer was made, apart from its program and a loss that is a function.

    Raises:
        ContractError: one of them is none of the choices, or of another kind.
    """

    trainable: str | tuple[str, ...]
    mode: Mode
    optimizer: AdamW
    schedule: Schedule
    memory_budget: int | None
    on_nonfinite: OnNonFinite
    method: str | None
    rank: int
    alpha: float

    def __post_init__(self) -> None:
        choices = {"mode": ("latent", "adapter"), "on_nonfinite": ("error", "count")}
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ContractError(
                    f"{name}: expected {' or '.join(map(repr, allowed))}, "
                    f"received {getattr(self, name)!r}"
                )
        self._check_kinds()

    def _check_kinds(self) -> None:
        checks = {
            "optimizer": (isinstance(self.optimizer, AdamW), "nybble.AdamW(...)"),
            "schedule": (
                callable(getattr(self.schedule, "factor", None)),
                "nybble.Cosine(...), or another schedule",
            ),
            "memory_budget": (
                self.memory_budget is None or isinstance(self.memory_budget, Integral),
                "a number of bytes, or None",
            ),
            "rank": (isinstance(self.rank, Integral), "a positive integer"),
        }
        for name, (fits, expected) in checks.items():
            if not fits:
                raise ContractError(
                    f"{name}: expected {expected}, received {getattr(self, name)!r}"
                )
