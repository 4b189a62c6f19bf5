"""Checkpoints: one safetensors file with everything, beside a copy of the program."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nybble.contract import Array
from nybble.errors import ContractError, NybbleError, ProgramFormatError
from nybble.source import as_path

from .files import (
    read_metadata,
    read_safetensors,
    remove_leftovers,
    safetensors_bytes,
    write_whole,
)
from .optimizer import AdamW, Constant, Cosine, Linear, Schedule

__all__ = [
    "Checkpoint", "check_states", "contents_digest", "generator_state", "program_digest",
    "read_checkpoint", "read_notes", "refuse_other_program", "write_checkpoint",
]  # fmt: skip

_FILE = "checkpoint.safetensors"
_PROGRAM = "program.pte"
_SETTINGS = frozenset((
    "trainable", "mode", "optimizer", "schedule", "memory_budget", "on_nonfinite", "method", "rank",
    "alpha", "loss", "labels", "rng", "skipped", "shapes",
    "integers", "notes",
))  # fmt: skip
_SCHEDULES = {kind.__name__: kind for kind in (Constant, Cosine, Linear)}


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A trainer's states and settings; ``settings`` are its keyword arguments by name."""

    states: Mapping[str, Array]
    settings: Mapping[str, Any]
    program: str


def program_digest(data: bytes | bytearray | memoryview) -> str:
    """SHA-256 of a program's bytes."""
    return hashlib.sha256(data).hexdigest()


def write_checkpoint(
    directory: str | os.PathLike[str],
    checkpoint: Checkpoint,
    program: bytes | bytearray | memoryview,
) -> None:
    """Write a checkpoint. At any moment the folder holds the previous one or this, whole.

    Raises:
        NybbleError: it cannot be written; the previous one is untouched.
        ContractError: the schedule is of the caller's own making, JSON cannot hold the notes, or
            the folder holds another program or its checkpoint.
    """
    folder = as_path(directory, "directory")
    copy = folder / _PROGRAM
    for file in (copy, folder / _FILE):
        remove_leftovers(file)
    settings = {**checkpoint.settings, "schedule": _schedule_data(checkpoint.settings["schedule"])}
    settings["optimizer"] = dataclasses.asdict(checkpoint.settings["optimizer"])
    text = _settings_text(settings)
    metadata = {
        "format": "nybble", "program": checkpoint.program, "settings": text,
        "contents": contents_digest(checkpoint.states, text),
    }  # fmt: skip
    if not _holds_copy(folder, checkpoint.program):
        refuse_other_program(folder, checkpoint.program)
        write_whole(copy, bytes(program))
    write_whole(folder / _FILE, safetensors_bytes(checkpoint.states, metadata))


def refuse_other_program(directory: str | os.PathLike[str], digest: str) -> None:
    """Raise ContractError where a folder holds another program than ``digest``, or its checkpoint.

    A copy beside a checkpoint of the same program may be missing or damaged: it is replaced.
    """
    folder = as_path(directory, "directory")
    if _holds_copy(folder, digest):
        return
    if not (folder / _FILE).exists():
        if (folder / _PROGRAM).exists():
            raise ContractError(
                f"{folder / _PROGRAM} is another program, in the place of which a checkpoint would "
                "write its copy; choose another folder"
            )
    elif _digest_in(folder / _FILE) != digest:
        raise ContractError(
            f"{folder} holds a checkpoint of another program, or a damaged one; choose another "
            "folder"
        )


def generator_state(rng: np.random.Generator) -> Mapping[str, Any]:
    """The state of a trainer's generator.

    Raises:
        ContractError: it is of another kind than numpy's default.
    """
    if not isinstance(getattr(rng, "bit_generator", None), np.random.PCG64):
        raise ContractError(f"rng: expected what numpy.random.default_rng gives, received {rng!r}")
    return rng.bit_generator.state


def contents_digest(states: Mapping[str, Array], settings: str) -> str:
    """SHA-256 over settings and states: a changed bit would go on to another result."""
    found = hashlib.sha256(settings.encode())
    for name in sorted(states):
        content = states[name]
        found.update(f"{name} {content.dtype} {content.shape}".encode())
        found.update(np.ascontiguousarray(content).reshape(-1).view(np.uint8).data)
    return found.hexdigest()


def _holds_copy(folder: Path, digest: str) -> bool:
    copy = folder / _PROGRAM
    return copy.is_file() and program_digest(copy.read_bytes()) == digest


def _settings_text(settings: Mapping[str, Any]) -> str:
    try:
        notes = settings["notes"]
        if not isinstance(notes, dict):
            raise TypeError(f"received a {type(notes).__name__}")
        _check_keys(notes)
        return json.dumps(settings)
    except (TypeError, ValueError, RecursionError) as error:
        raise ContractError(
            "notes: expected a dict of what JSON can hold, numbers, texts, lists and dicts with "
            f"texts as keys ({error})"
        ) from error


def _check_keys(notes: Any) -> None:
    """JSON makes texts of other keys, and may make one of two."""
    if isinstance(notes, dict):
        for key, value in notes.items():
            if not isinstance(key, str):
                raise TypeError(f"received the key {key!r}")
            _check_keys(value)
    elif isinstance(notes, list | tuple):
        for value in notes:
            _check_keys(value)


def _digest_in(file: Path) -> str | None:
    """The digest of the program to which a checkpoint belongs; None where it is damaged."""
    try:
        return read_metadata(file).get("program")
    except ProgramFormatError:
        return None


def _schedule_data(schedule: Schedule) -> dict[str, Any]:
    name = type(schedule).__name__
    if _SCHEDULES.get(name) is not type(schedule):
        raise ContractError(
            f"a checkpoint cannot hold a schedule of type {name}; use Constant, Linear or Cosine"
        )
    return {"kind": name, **dataclasses.asdict(schedule)}


def read_checkpoint(directory: str | os.PathLike[str]) -> tuple[Checkpoint, bytes]:
    """The checkpoint in a folder, and the program beside it.

    Raises:
        NybbleError: there is none, or it cannot be read.
        ProgramFormatError: it is damaged, or of another program than the one beside it.
    """
    folder = as_path(directory, "directory")
    states, metadata = read_safetensors(_file_in(folder))
    with _expecting_checkpoint(folder):
        if metadata["contents"] != contents_digest(states, metadata["settings"]):
            raise ValueError("its contents do not fit their SHA-256")
        settings = json.loads(metadata["settings"])
        schedule = settings["schedule"]
        settings["schedule"] = _SCHEDULES[schedule.pop("kind")](**schedule)
        optimizer = settings["optimizer"]
        settings["optimizer"] = AdamW(**{**optimizer, "betas": tuple(optimizer["betas"])})
        digest = metadata["program"]
        _check_settings(settings)
    try:
        program = (folder / _PROGRAM).read_bytes()
    except OSError as error:
        raise NybbleError(f"{folder / _PROGRAM} cannot be read ({error.strerror})") from error
    return Checkpoint(states, settings, digest), program


def read_notes(directory: str | os.PathLike[str]) -> dict[str, Any]:
    """The caller's notes in a checkpoint, whose states are neither read nor checked.

    Raises:
        NybbleError: there is no checkpoint, or it cannot be read.
        ProgramFormatError: it is damaged.
    """
    folder = as_path(directory, "directory")
    metadata = read_metadata(_file_in(folder))
    with _expecting_checkpoint(folder):
        return dict(json.loads(metadata["settings"])["notes"])


def _file_in(folder: Path) -> Path:
    if not (folder / _FILE).is_file():
        raise NybbleError(f"{folder} holds no checkpoint ({_FILE} is missing)")
    return folder / _FILE


@contextmanager
def _expecting_checkpoint(folder: Path) -> Iterator[None]:
    """What a file that is none of ours raises, as an error that says so."""
    try:
        yield
    except (
        LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError,
    ) as error:  # fmt: skip
        raise ProgramFormatError(
            f"{folder / _FILE} is no checkpoint of this version of nybble's trainer ({error!r})"
        ) from error


def _check_settings(settings: Mapping[str, Any]) -> None:
    if set(settings) != _SETTINGS:
        raise KeyError(*sorted(_SETTINGS ^ set(settings)))
    name, shape = settings["labels"]
    np.dtype(name)
    for sizes in (shape, *settings["shapes"]):
        np.empty((0, *sizes))
    for number, element, value in settings["integers"]:
        held = settings["shapes"][int(number)]
        if not 0 <= int(element) < math.prod(held) or int(value) != value:
            raise ValueError(f"integer {value} at {element} of an input {held}")
    skipped = settings["skipped"]
    if not isinstance(skipped, int) or skipped < 0:
        raise ValueError(f"skipped {skipped!r}")
    if not isinstance(settings["notes"], dict):
        raise TypeError(f"notes {settings['notes']!r}")
    np.random.default_rng().bit_generator.state = settings["rng"]


def check_states(
    directory: str | os.PathLike[str], found: Iterable[str], expected: Iterable[str]
) -> None:
    """A checkpoint must hold the states of its trainer, all and no other.

    Raises:
        ProgramFormatError: it does not.
    """
    different = sorted(set(found) ^ set(expected))
    if different:
        raise ProgramFormatError(
            f"{Path(directory) / _FILE} does not hold the states of this trainer: it lacks, or has "
            f"beside them, {', '.join(different)}; use another checkpoint"
        )
