"""A training from the command line that was stopped, and goes on."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nybble
from nybble.training import Trainer
from nybble.training.checkpoint import contents_digest
from nybble.training.files import read_safetensors, safetensors_bytes

Command = Callable[..., Any]


def interrupt_at(monkeypatch: pytest.MonkeyPatch, number: int, count: int = 1) -> None:
    """Let the trainer be interrupted as by Ctrl-C, ``count`` times, in its step ``number``."""
    step, begun = Trainer.step, iter(range(number - 1))

    def interrupted(trainer: Trainer, *batch: Any) -> Any:
        loss = step(trainer, *batch)
        if next(begun, None) is None:
            for _ in range(count):
                os.kill(os.getpid(), signal.SIGINT)
        return loss

    monkeypatch.setattr(Trainer, "step", interrupted)


@pytest.mark.parametrize("stop", [1, 9, 14, 26])
def test_an_interrupted_training_goes_on_bit_for_bit(
    command: Command, arguments: tuple[Any, ...], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, stop: int,
) -> None:  # fmt: skip
    """In an epoch, at its end, or in the last: the same program, evaluations and curve."""
    out, run = tmp_path / "tuned.pte", tmp_path / "run"
    whole = command(*arguments)
    expected = out.read_bytes()
    out.unlink()

    with monkeypatch.context() as patch:
        interrupt_at(patch, stop)
        ended = command(*arguments, "--checkpoint", run)
    assert 130 == ended.status
    assert f"interrupted after {stop} of 27 steps: {out} was not written" in ended.err
    assert f"`nybble train --resume {run}` goes on from the checkpoint." in ended.err
    assert not out.exists()

    ended = command("train", "--resume", run)
    assert (0, whole.out) == (ended.status, ended.out), ended.err
    assert f"forward.linear_1, from step {stop} on" in ended.err
    assert f"{27 - stop} steps in" in ended.err
    assert expected == out.read_bytes()
    assert signal.default_int_handler is signal.getsignal(signal.SIGINT)


def test_a_stopped_machine_costs_an_epoch_at_most(
    command: Command, arguments: tuple[Any, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two interrupts, as anything that ends it at once: it goes on from the last epoch's end."""
    out, run = tmp_path / "tuned.pte", tmp_path / "run"
    whole = command(*arguments)
    expected = out.read_bytes()
    out.unlink()
    for stop in (14, 20):
        resumed = () if stop == 14 else ("--resume", run)
        with monkeypatch.context() as patch:
            interrupt_at(patch, stop - 9 * bool(resumed), count=2)
            ended = command(*arguments, "--checkpoint", run, *resumed)
        assert 130 == ended.status
        assert f"from the checkpoint after step {stop // 9 * 9}." in ended.err
    moved = tmp_path / "elsewhere.pte"
    ended = command(*arguments, "--resume", run, "--out", moved)
    assert (0, whole.out) == (ended.status, ended.out), ended.err
    assert expected == moved.read_bytes()
    assert not out.exists()


def test_an_interrupt_without_a_checkpoint_is_one(
    command: Command, arguments: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is nothing to finish, so that the first ends it, and nothing to go on from."""
    interrupt_at(monkeypatch, 5)
    ended = command(*arguments)
    assert 130 == ended.status
    assert re.search(r"interrupted after \d of 27 steps: .* was not written\.$", ended.err)


@pytest.fixture
def stopped(
    command: Command, arguments: tuple[Any, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The checkpoint of a training that was interrupted after 14 of 27 steps."""
    with monkeypatch.context() as patch:
        interrupt_at(patch, 14)
        command(*arguments, "--checkpoint", tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--epochs", "5"), "--epochs 5 contradicts the checkpoint in {run}"),
        (("--lr", "0.02"), "made with --lr 0.01"),
        (("--weight-decay", "0"), "made with --weight-decay 0.1"),
        (("--loss", "mse"), "made with --loss cross_entropy"),
        (("--trainable", "*_0"), "made with --trainable *"),
        (("--seed", "0"), "made with --seed 3"),
        (("--method", "forward"), "made with no --method"),
        (("--on-nonfinite", "count"), "made with --on-nonfinite error"),
        (("--data", "{other}", "{labels}"), "are not those with which the checkpoint in {run} was"),
        (("--validation", "{other}", "{labels}"), "The rows in {other} and {labels} are not those"),
        (("--out", "{run}/program.pte"), "is where the checkpoint keeps the untrained program"),
        (("{program}",), "the checkpoint in {run} is of another program than the one given"),
        (("--checkpoint", "{foreign}"), "{foreign} holds a checkpoint of another program"),
        (("--resume", "{nowhere}"), "--resume {nowhere} is not there: name a folder"),
        (("--resume", "{labels}"), "--resume {labels} is a file: name the folder"),
        (("--resume", "{empty}"), "{empty} holds no checkpoint"),
        (("--resume", "{foreign}"), "was written in Python, not by nybble train"),
    ],
)  # fmt: skip
def test_what_contradicts_a_checkpoint_is_told(
    command: Command, fixtures: Path, data: tuple[Path, Path], stopped: Path, tmp_path: Path,
    options: tuple[str, ...], sentence: str,
) -> None:  # fmt: skip
    """In a sentence, before a step is taken: the checkpoint is as it was."""
    np.save(tmp_path / "other.npy", np.load(data[0]) + 1)
    (tmp_path / "empty").mkdir()
    program = nybble.load(fixtures / "q4_linear.pte", device="host")
    Trainer(program, "mse").checkpoint(tmp_path / "foreign")
    places = {
        "run": stopped, "other": tmp_path / "other.npy", "labels": data[1],
        "program": fixtures / "q4_linear.pte", "foreign": tmp_path / "foreign",
        "nowhere": tmp_path / "nowhere", "empty": tmp_path / "empty",
    }  # fmt: skip
    before = (stopped / "checkpoint.safetensors").read_bytes()
    ended = command("train", "--resume", stopped, *(o.format(**places) for o in options))
    assert (1, "") == (ended.status, ended.out)
    assert sentence.format(**places) in " ".join(ended.err.split())
    assert not (tmp_path / "tuned.pte").exists()
    assert before == (stopped / "checkpoint.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("skipped",), "x"),
        (("rng", "has_uint32"), 10**60),
        (("notes", "nybble train"), 7),
        (("notes", "nybble train", "choices", "epochs"), {}),
        (("notes", "nybble train", "choices", "epochs"), -1),
        (("notes", "nybble train", "choices", "data"), ["x.npy"]),
        (("notes", "nybble train", "choices", "validation"), ["x.npy"]),
        (("notes", "nybble train", "choices", "loss"), None),
        (("notes", "nybble train", "losses"), [[]]),
        (("notes", "nybble train", "losses"), [1.0] * 1000),
        (("notes", "nybble train", "per_epoch"), 3.7),
        (("notes", "nybble train", "before"), 1),
        (("notes", "nybble train", "order", "state", "inc"), 10**60),
    ],
)
def test_a_changed_checkpoint_is_refused(
    command: Command, stopped: Path, place: tuple[str, ...], value: Any
) -> None:
    """In a sentence that names the folder, whatever was changed in it."""
    file = stopped / "checkpoint.safetensors"
    states, metadata = read_safetensors(file)
    held = settings = json.loads(metadata["settings"])
    for key in place[:-1]:
        held = held[key]
    assert place[-1] in held
    held[place[-1]] = value
    text = json.dumps(settings)
    metadata |= {"settings": text, "contents": contents_digest(states, text)}
    file.write_bytes(safetensors_bytes(states, metadata))
    ended = command("train", "--resume", stopped)
    assert (1, "") == (ended.status, ended.out)
    assert "of another version of nybble train" in ended.err or "is no checkpoint of" in ended.err


def test_a_finished_training_says_so_or_writes_what_is_missing(
    command: Command, arguments: tuple[Any, ...], tmp_path: Path
) -> None:
    """The program is there: no step is left. It was removed: it is written again."""
    out, run = tmp_path / "tuned.pte", tmp_path / "run"
    whole = command(*arguments, "--checkpoint", run)
    expected = out.read_bytes()
    ended = command("train", "--resume", run)
    assert (1, "") == (ended.status, ended.out)
    assert f"The training in {run} is finished: {out} was written after 3 epochs" in ended.err

    for place in ((), ("--out", tmp_path / "other.pte")):
        out.unlink(missing_ok=True)
        (tmp_path / "other.pte").write_bytes(b"of something else")
        ended = command("train", "--resume", run, *place)
        assert (0, whole.out) == (ended.status, ended.out), ended.err
        written = out if not place else tmp_path / "other.pte"
        assert expected == written.read_bytes()


def test_no_file_of_the_users_is_lost_to_a_checkpoint(
    command: Command, arguments: tuple[Any, ...], stopped: Path, tmp_path: Path
) -> None:
    """Not the tuned program, not another one that is called as the copy, not the steps so far."""
    before = (stopped / "checkpoint.safetensors").read_bytes()
    ended = command(*arguments, "--checkpoint", stopped)
    assert (1, "") == (ended.status, ended.out)
    assert f"{stopped} holds a training after 14 of 27 steps: `nybble train --resume" in ended.err
    assert before == (stopped / "checkpoint.safetensors").read_bytes()

    folder = tmp_path / "folder"
    folder.mkdir()
    ended = command(*arguments, "--checkpoint", folder, "--out", folder / "program.pte")
    assert (1, "") == (ended.status, ended.out)
    assert "is where the checkpoint keeps the untrained program" in ended.err

    (folder / "program.pte").write_bytes(b"of the user")
    ended = command(*arguments, "--checkpoint", folder)
    assert 1 == ended.status
    assert "is another program, in the place of which a checkpoint would write" in ended.err
    assert b"of the user" == (folder / "program.pte").read_bytes()


def test_a_folder_that_cannot_be_written_is_known_before_training(
    command: Command, arguments: tuple[Any, ...], data: tuple[Path, Path], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Not after the first epoch: the first checkpoint is of no step."""
    monkeypatch.setattr(Trainer, "step", None)
    ended = command(*arguments, "--checkpoint", data[0] / "run")
    assert 1 == ended.status
    assert "cannot be written" in ended.err
    assert not (tmp_path / "tuned.pte").exists()


def test_a_program_that_cannot_be_written_is_not_told_as_finished(
    command: Command, arguments: tuple[Any, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last checkpoint follows the program: until then the training is not over."""
    out, run = tmp_path / "tuned.pte", tmp_path / "run"
    command(*arguments)
    expected = out.read_bytes()

    def full(*_: Any) -> None:
        raise nybble.NybbleError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "save", full)
        assert 1 == command(*arguments, "--checkpoint", run).status
    ended = command("train", "--resume", run)
    assert 0 == ended.status, ended.err
    assert "from step 18 on" in ended.err
    assert expected == out.read_bytes()


def test_a_folder_of_another_programs_checkpoint_is_refused_before_training(
    command: Command, fixtures: Path, arguments: tuple[Any, ...], tmp_path: Path
) -> None:
    """Not after the first epoch."""
    program = nybble.load(fixtures / "q4_linear.pte", device="host")
    Trainer(program, "mse").checkpoint(tmp_path / "run")
    ended = command(*arguments, "--checkpoint", tmp_path / "run")
    assert (1, "") == (ended.status, ended.out)
    assert "holds a checkpoint of another program, or a damaged one; choose" in ended.err


@pytest.mark.parametrize("missing", ["FILE", "--data", "--out"])
def test_a_new_training_needs_a_file_data_and_where_to_write(
    command: Command, arguments: tuple[Any, ...], missing: str
) -> None:
    """Only one that goes on knows them."""
    parts = {"FILE": arguments[1:2], "--data": arguments[2:5], "--out": arguments[5:7]}
    given = [word for name, words in parts.items() if name != missing for word in words]
    ended = command("train", *given)
    assert (2, "") == (ended.status, ended.out)
    assert "Missing " in ended.err
    assert f"'{missing}'" in ended.err
