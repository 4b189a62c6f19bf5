"""How a trainer was made."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from nybble.arguments import is_integer, is_number
from nybble.errors import ContractError
from nybble.program import Method, Program

from .optimizer import AdamW, Schedule
from .pending import OnNonFinite

__all__ = ["Mode", "Options", "adapter_sizes", "check_program", "checked_globs", "generator"]

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
                self.memory_budget is None or (is_integer(self.memory_budget, least=0)),
                "a number of bytes, or None",
            ),
            "alpha": (is_number(self.alpha), "a number"),
            "rank": (is_integer(self.rank, least=1), "a positive integer"),
        }
        for name, (fits, expected) in checks.items():
            if not fits:
                raise ContractError(
                    f"{name}: expected {expected}, received {getattr(self, name)!r}"
                )


def adapter_sizes(mode: Any, rank: Any, alpha: Any) -> tuple[Any, Any]:
    """An adapter's rank and alpha, by default 8 and 16.

    Raises:
        ContractError: one is given where no adapter is trained.
    """
    if mode == "latent" and not (rank is None and alpha is None):
        raise ContractError('rank and alpha are those of adapters: give mode="adapter" with them')
    return 8 if rank is None else rank, 16.0 if alpha is None else alpha


def check_program(program: Any) -> None:
    """Raise ContractError unless ``program`` is a loaded program."""
    if isinstance(program, Program):
        return
    advice = ""
    if isinstance(program, Method):
        advice = f"; pass the program and method={program.name!r}"
    elif isinstance(program, (str, os.PathLike)):
        advice = f"; nybble.load({os.fspath(program)!r}) gives one"
    raise ContractError(
        f"program: expected a loaded program, received {type(program).__name__}{advice}"
    )


def checked_globs(trainable: Any) -> str | tuple[str, ...]:
    """``trainable`` as a glob, or a tuple of them.

    Raises:
        ContractError: it is of another kind.
    """
    if isinstance(trainable, str):
        return trainable
    if isinstance(trainable, Iterable):
        globs = tuple(trainable)
        if all(isinstance(glob, str) for glob in globs):
            return globs
    raise ContractError(f"trainable: expected a glob or several, received {trainable!r}")


def generator(seed: Any) -> np.random.Generator:
    """The trainer's random numbers.

    Raises:
        ContractError: the seed is no integer from 0 on.
    """
    if not is_integer(seed, least=0):
        raise ContractError(f"seed: expected an integer from 0 on, received {seed!r}")
    return np.random.default_rng(int(seed))
