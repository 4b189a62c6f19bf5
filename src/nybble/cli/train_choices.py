"""What the options of a training chose, kept in its checkpoints and compared when it goes on."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

import numpy as np

from nybble.errors import NybbleError, ProgramFormatError

__all__ = [
    "Choices", "Pair", "Progress", "check_classes", "read_progress", "refuse_unfinished",
]  # fmt: skip

_NOTE = "nybble train"
_DECISIVE = (
    "epochs", "lr", "weight_decay", "loss", "trainable", "method", "seed", "on_nonfinite",
)  # fmt: skip
"""What a training that goes on cannot change; it may run elsewhere and write elsewhere."""
_PATHS = frozenset(("file", "out", "checkpoint", "plot"))
_PATH_LISTS = frozenset(("data", "validation", "external"))


@dataclass(frozen=True)
class Pair:
    """Inputs and labels, row by row, and the files that hold them."""

    paths: tuple[Path, Path]
    x: Any
    labels: Any

    @cached_property
    def digest(self) -> str:
        """SHA-256 over element types, shapes and contents."""
        found = hashlib.sha256()
        for array in (self.x, self.labels):
            found.update(f"{array.dtype}{array.shape}".encode())
            found.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        return found.hexdigest()


@dataclass(frozen=True)
class Choices:
    """The options of ``nybble train`` by their names, apart from --resume."""

    file: Path
    data: tuple[Path, Path]
    out: Path
    epochs: int
    lr: float
    weight_decay: float
    loss: str
    trainable: str
    validation: tuple[Path, Path] | None
    checkpoint: Path | None
    plot: Path | None
    device: str
    method: str | None
    on_unsupported: str
    external: tuple[Path, ...]
    seed: int
    on_nonfinite: str

    def stored(self) -> dict[str, Any]:
        """As JSON holds it, with paths that hold in any folder."""
        return {field.name: _stored(getattr(self, field.name)) for field in fields(self)}

    @staticmethod
    def read(stored: Mapping[str, Any]) -> Choices:
        """The opposite of :meth:`stored`."""
        found = dict(stored)
        for name, kind in get_type_hints(Choices).items():
            value = found[name]
            if value is None and NoneType in get_args(kind):
                continue
            if name in _PATHS:
                found[name] = Path(value)
            elif name in _PATH_LISTS:
                found[name] = tuple(map(Path, value))
            elif not isinstance(value, int | float if kind is float else kind):
                raise TypeError(f"{name} {value!r}")
        if len(found["data"]) != 2 or len(found["validation"] or "xy") != 2:
            raise ValueError(f"data {found['data']}, validation {found['validation']}")
        if found["epochs"] < 1:
            raise ValueError(f"epochs {found['epochs']}")
        return Choices(**found)

    def going_on(self, asked: Choices, given: Collection[str], folder: Path) -> Choices:
        """These, with the ``given`` ones of what was ``asked`` now.

        Raises:
            NybbleError: one would change what the training comes to.
        """
        for name in _DECISIVE:
            now, before = getattr(asked, name), getattr(self, name)
            if name in given and now != before:
                option = f"--{name.replace('_', '-')}"
                made = f"{option} {before}" if before is not None else f"no {option}"
                raise NybbleError(
                    f"{option} {now} contradicts the checkpoint in {folder}, which was made with "
                    f"{made}: leave the option out, or train anew without --resume."
                )
        known = {field.name: getattr(asked, field.name) for field in fields(self)}
        return replace(self, **{name: known[name] for name in known if name in given})


def _stored(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_stored(part) for part in value]
    return str(value.absolute()) if isinstance(value, Path) else value


@dataclass(frozen=True)
class Progress:
    """How far a training is: the losses of its steps, and what cannot be told from its states."""

    choices: Choices
    losses: tuple[float, ...]
    per_epoch: int
    before: str
    digest: str
    shown: str
    order: Mapping[str, Any]

    @property
    def is_finished(self) -> bool:
        """Whether all steps were taken."""
        return len(self.losses) >= self.choices.epochs * self.per_epoch

    def refuse_other_rows(self, data: Pair, shown: Pair, folder: Path) -> None:
        """Raise NybbleError where rows differ from those that the checkpoint was made with."""
        for pair, digest in ((data, self.digest), (shown, self.shown)):
            if pair.digest != digest:
                raise NybbleError(
                    f"The rows in {pair.paths[0]} and {pair.paths[1]} are not those with which the "
                    f"checkpoint in {folder} was made: give the same data, or train anew without "
                    "--resume."
                )

    def notes(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        known = {field.name: getattr(self, field.name) for field in fields(self)}
        return {_NOTE: {**known, "choices": self.choices.stored()}}


def check_classes(pair: Pair, loss: str, output: Sequence[int]) -> None:
    """Raise NybbleError for a label that is no class of ``output``; the trainer sees the rest."""
    labels, path = pair.labels, pair.paths[1]
    if loss != "cross_entropy" or not output or labels.dtype.kind not in "iu":
        return
    places = np.argwhere(labels >= output[-1])
    if len(places) and labels.shape[1:] == tuple(output[1:-1]):
        row, *rest = map(int, places[0])
        inside = f" at {rest}" if rest else ""
        raise NybbleError(
            f"{path}: row {row} (counted from 0) holds {labels[tuple(places[0])]}{inside}, which "
            f"is no class; the program's output has {output[-1]}, 0 to {output[-1] - 1} (negative "
            "labels are ignored)."
        )


def read_progress(folder: Path) -> Progress:
    """How far the training was whose checkpoint is in ``folder``.

    Raises:
        NybbleError: there is no checkpoint, or none of this command.
        ProgramFormatError: it is damaged.
    """
    from nybble.training.checkpoint import read_notes

    if not folder.is_dir():
        what = "is a file: name the folder" if folder.exists() else "is not there: name a folder"
        raise NybbleError(f"--resume {folder} {what} into which --checkpoint wrote.")
    found = read_notes(folder).get(_NOTE)
    if found is None:
        raise NybbleError(
            f"The checkpoint in {folder} was written in Python, not by nybble train: "
            f"nybble.Trainer.resume({str(folder)!r}) goes on from it."
        )
    try:
        np.random.default_rng().bit_generator.state = found["order"]
        choices, losses = Choices.read(found["choices"]), tuple(map(float, found["losses"]))
        progress = Progress(**{**found, "choices": choices, "losses": losses})
        _check_counts(progress)
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:
        raise ProgramFormatError(
            f"The checkpoint in {folder} is of another version of nybble train ({error!r}): "
            "train anew."
        ) from error
    return progress


def _check_counts(progress: Progress) -> None:
    steps = progress.per_epoch
    if not isinstance(steps, int) or not len(progress.losses) <= progress.choices.epochs * steps:
        raise ValueError(f"{len(progress.losses)} losses of epochs of {steps!r} steps")
    if not isinstance(progress.before, str):
        raise TypeError(f"before {progress.before!r}")


def refuse_unfinished(folder: Path) -> None:
    """Raise NybbleError where ``folder`` holds a training that has begun and not ended."""
    try:
        progress = read_progress(folder)
    except NybbleError:
        return
    if progress.losses and not progress.is_finished:
        total = progress.choices.epochs * progress.per_epoch
        raise NybbleError(
            f"{folder} holds a training after {len(progress.losses)} of {total} steps: "
            f"`nybble train --resume {shlex.quote(str(folder))}` goes on with it. To train anew, "
            "remove the folder or name another."
        )
