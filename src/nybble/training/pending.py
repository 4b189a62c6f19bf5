"""Losses of steps under way, and the count of those that the device applied."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Literal

from nybble.devices.base import Pending
from nybble.errors import NybbleError
from nybble.words import counted

__all__ = ["NonFiniteError", "OnNonFinite", "StepLoss", "Steps"]

OnNonFinite = Literal["error", "count"]


class NonFiniteError(NybbleError):
    """A loss or a gradient held a NaN or an infinity; the step was not applied."""


class StepLoss:
    """The loss of a step; ``float(loss)`` waits for the device, nothing else does."""

    def __init__(self, steps: Steps, pending: Pending, number: int) -> None:
        self._steps = steps
        self._pending: Pending | None = pending
        self._value = 0.0
        self.number = number

    def __float__(self) -> float:
        self._steps.settle(self)
        return self._value

    def item(self) -> float:
        """The loss as a float, as torch's tensors give it."""
        return float(self)

    def __format__(self, form: str) -> str:
        return format(float(self), form)

    def __repr__(self) -> str:
        return f"<loss of step {self.number}>" if self._pending else f"{self._value!r}"

    @property
    def settled(self) -> bool:
        """Whether the value is here already."""
        return self._pending is None

    def fetch(self) -> tuple[int, int]:
        """Wait for the value; the slot of the first fault (-1 for none) and its elements."""
        if self._pending is None:
            return -1, 0
        loss, fault = self._pending.result()
        self._value = float(loss)
        self._pending = None
        return int(fault[0]), int(fault[1])


class Steps:
    """Steps under way, in order.

    ``applied`` counts the settled steps that the device applied, ``skipped`` those that it did
    not; ``faults`` says why, a sentence each.
    """

    def __init__(
        self, checked: Sequence[str], on_nonfinite: OnNonFinite, applied: int, skipped: int = 0
    ) -> None:
        self._checked = checked
        self._on_nonfinite = on_nonfinite
        self._open: deque[StepLoss] = deque()
        self._started = applied + skipped
        self.applied = applied
        self.skipped = skipped
        self.faults: list[str] = []

    def __len__(self) -> int:
        return len(self._open)

    def started(self, pending: Pending) -> StepLoss:
        """Take in a step that was submitted."""
        self._started += 1
        loss = StepLoss(self, pending, self._started)
        self._open.append(loss)
        return loss

    def settle(self, loss: StepLoss | None = None, *, leaving: int = 0) -> None:
        """Wait for all steps up to ``loss``, or for all but the last ``leaving``.

        Raises:
            NonFiniteError: one of them was not applied, unless faults are only counted.
        """
        while self._open and (len(self._open) > leaving if loss is None else not loss.settled):
            # In line until its value is here: an interrupt or a lost device counts nothing.
            first = self._open[0]
            slot, count = first.fetch()
            self._open.popleft()
            if slot < 0:
                self.applied += 1
            else:
                self._note(first.number, slot, count)

    def _note(self, number: int, slot: int, count: int) -> None:
        self.skipped += 1
        sentence = (
            f"step {number}: {self._checked[slot]} held {counted(count, 'value')} that "
            f"{'is' if count == 1 else 'are'} NaN or infinite; "
            "the step was not applied"
        )
        self.faults.append(sentence)
        if self._on_nonfinite == "error":
            raise NonFiniteError(
                f"{sentence}. Lower the learning rate, look at the batch, or pass "
                "on_nonfinite='count' to go on without such steps"
            )
