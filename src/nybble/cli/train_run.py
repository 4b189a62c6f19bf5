"""The steps of ``nybble train``: its bar, its checkpoints, and what Ctrl-C does."""

from __future__ import annotations

import shlex
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from nybble.cli.consoles import stderr
from nybble.errors import DeviceError

if TYPE_CHECKING:
    from nybble.training import Trainer

    from .train_choices import Pair, Progress

__all__ = ["TrainingRun"]


class TrainingRun:
    """Takes the steps that are left of a training.

    Args:
        trainer: as it was when the steps of ``progress`` were taken.
        data: inputs and labels.
        rows: rows of a batch.
        progress: how far the training is.
        checkpoint: the folder for checkpoints.
        resumed: the folder whose checkpoint is gone on from.
    """

    def __init__(
        self, trainer: Trainer, data: Pair, rows: int, progress: Progress,
        checkpoint: Path | None, resumed: Path | None,
    ) -> None:  # fmt: skip
        self.trainer = trainer
        self.losses: list[Any] = list(progress.losses)
        self._data = data
        self._rows = rows
        self._progress = progress
        self._total = progress.choices.epochs * progress.per_epoch
        self._checkpoint = checkpoint
        self._resumable = resumed
        self._saved = 0 if resumed is None else len(self.losses)
        if resumed is not None:
            trainer.rng.bit_generator.state = progress.order
        self._order = trainer.rng.bit_generator.state

    def finish(self, out: Path) -> list[float]:
        """Take the steps, write the program; the losses of all steps.

        The last checkpoint follows the program, so that it says that both are there.

        Raises:
            KeyboardInterrupt: the program was not written; a checkpoint was, if one is asked for.
        """
        started, before = time.perf_counter(), (len(self.losses), self.trainer.skipped)
        try:
            with _interrupts(deferred=self._checkpoint is not None) as interrupted:
                if len(self.losses) < self._total:
                    # A folder that cannot be written is known before the first epoch.
                    self._write_checkpoint()
                self._take_steps(interrupted)
                values = [float(value) for value in self.losses]
                seconds = time.perf_counter() - started
                self.trainer.save(out)
                if len(values) > before[0]:
                    self._write_checkpoint()
        except (KeyboardInterrupt, DeviceError):
            self._tell_what_goes_on(out)
            raise
        skipped = self.trainer.skipped - before[1]
        left_out = f", {skipped} of them not applied" if skipped else ""
        stderr().print(f"{len(values) - before[0]} steps in {seconds:.1f} s{left_out}")
        return values

    def _take_steps(self, interrupted: threading.Event) -> None:
        from rich import progress as bars

        columns = (
            bars.TextColumn("{task.description}"), bars.BarColumn(), bars.MofNCompleteColumn(),
            bars.TimeElapsedColumn(), bars.TextColumn("left"), bars.TimeRemainingColumn(),
        )  # fmt: skip
        console = stderr()
        hidden = not console.is_terminal
        with bars.Progress(*columns, console=console, transient=True, disable=hidden) as bar:
            task = bar.add_task("training", total=self._total, completed=len(self.losses))
            while len(self.losses) < self._total:
                for text in self._epoch(interrupted):
                    bar.update(task, completed=len(self.losses), description=text)
                if len(self.losses) < self._total:
                    self._write_checkpoint()

    def _epoch(self, interrupted: threading.Event) -> Iterator[str]:
        """What is left of an epoch, a text after each step."""
        from nybble.training import shuffled_batches

        number, taken = divmod(len(self.losses), self._progress.per_epoch)
        batches = shuffled_batches(self._data.x, self._data.labels, self._rows, self.trainer.rng)
        for batch in islice(batches, taken, None):
            if interrupted.is_set():
                self._write_checkpoint()
                raise KeyboardInterrupt
            self.losses.append(self.trainer.step(*batch))
            settled = (x for x in reversed(self.losses) if isinstance(x, float) or x.settled)
            shown = next((f", loss {float(x):.4f}" for x in settled), "")
            yield f"epoch {number + 1}{shown}"
        self._order = self.trainer.rng.bit_generator.state

    def _write_checkpoint(self) -> None:
        if self._checkpoint is None:
            return
        losses = tuple(float(value) for value in self.losses)
        progress = replace(self._progress, losses=losses, order=self._order)
        self.trainer.notes.update(progress.notes())
        self.trainer.checkpoint(self._checkpoint)
        self._resumable, self._saved = self._checkpoint, len(losses)

    def _tell_what_goes_on(self, out: Path) -> None:
        steps = f"{len(self.losses)} of {self._total} steps"
        told = f"interrupted after {steps}: {out} was not written"
        if self._resumable is not None:
            command = f"nybble train --resume {shlex.quote(str(self._resumable))}"
            since = "" if self._saved == len(self.losses) else f" after step {self._saved}"
            told += f"; `{command}` goes on from the checkpoint{since}"
        stderr().print(f"{told}.")


@contextmanager
def _interrupts(*, deferred: bool) -> Iterator[threading.Event]:
    """Ctrl-C sets an event, so that a step is whole before it ends the run; a second one ends it.

    Only the main thread can ask for that; elsewhere, and where it is not wanted, nothing changes.
    """
    event, before = threading.Event(), signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if not (deferred and main) or before in (None, signal.SIG_IGN):
        yield event
        return

    def first(number: int, frame: FrameType | None) -> None:
        del number, frame
        event.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, first)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, before)
