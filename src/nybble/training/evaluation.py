"""What an evaluation gives: mean loss, and accuracy where labels are classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nybble.contract import Array
from nybble.errors import ContractError

from .loss import Loss

__all__ = ["Evaluation", "Totals", "checked_batches"]


@dataclass(frozen=True)
class Evaluation:
    """Mean ``loss`` over ``count`` labels; ``accuracy`` in [0, 1], None where labels are values."""

    loss: float
    accuracy: float | None
    count: int

    def __str__(self) -> str:
        shown = f"loss {self.loss:.4f}"
        return shown if self.accuracy is None else f"{shown}, accuracy {self.accuracy:.2%}"


class Totals:
    """Sums over batches."""

    def __init__(self, loss: Loss) -> None:
        self._classes = loss == "cross_entropy"
        self._loss = 0.0
        self._right = 0
        self._count = 0
        self._batches = 0

    def add(self, loss: float, outputs: Sequence[Array], labels: Array) -> None:
        """Take in a batch's mean loss, outputs and labels."""
        valid = labels >= 0 if self._classes else np.ones(labels.shape, bool)
        count = int(valid.sum())
        self._loss += loss * count
        self._count += count
        self._batches += 1
        if self._classes:
            self._right += int((outputs[0].argmax(-1) == labels)[valid].sum())

    def result(self) -> Evaluation:
        """The means so far; loss 0 where every label is ignored.

        Raises:
            ContractError: there was no batch.
        """
        if not self._batches:
            raise ContractError(
                "evaluate: expected at least one batch of (inputs, labels), received none; an "
                "iterator that was read to its end has no more"
            )
        share = max(1, self._count)
        accuracy = self._right / share if self._classes else None
        return Evaluation(self._loss / share, accuracy, self._count)


def checked_batches(batches: Any) -> Iterator[Sequence[Any]]:
    """The batches, each a tuple or a list.

    Raises:
        ContractError: they are no iterable, or one of them is of another kind.
    """
    if not isinstance(batches, Iterable):
        kind = type(batches).__name__
        raise ContractError(f"evaluate: expected batches of (inputs, labels), received {kind}")
    for batch in batches:
        if not isinstance(batch, (tuple, list)):
            raise ContractError(
                "evaluate: expected batches of (inputs, labels), each a tuple, received one that "
                f"is of type {type(batch).__name__}"
            )
        yield batch
