"""The command that fine-tunes a program."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nybble
from nybble.cli.curve import draw_curve
from nybble.training import Trainer

Command = Callable[..., Any]


def accuracy(line: str) -> float:
    """The percentage at the end of a line."""
    return float(line.rsplit("accuracy ", 1)[1].rstrip("%\n"))


def test_training_wins_accuracy_and_writes_the_program(
    command: Command, fixtures: Path, data: tuple[Path, Path], tmp_path: Path
) -> None:
    """Before, a curve, after, and a file that does as well as was said."""
    out = tmp_path / "tuned.pte"
    ended = command(
        "train", fixtures / "q4_mlp_batch8.pte", "--data", *data, "--out", out, "--epochs", "12",
        "--lr", "0.01", "--device", "host", "--checkpoint", tmp_path / "run",
    )  # fmt: skip
    assert 0 == ended.status, ended.err
    lines = ended.out.splitlines()
    assert lines[0].startswith("before  loss")
    assert lines[-1].startswith("after   loss")
    assert accuracy(lines[-1]) > accuracy(lines[0]) + 30
    assert "108 steps" in ended.out
    assert re.search(r"^108 steps in \d+\.\d s$", ended.err, re.MULTILINE)
    x, labels = (np.load(path) for path in data)
    program = nybble.load(out, device="host")
    right = sum(
        int((np.asarray(program(x[i : i + 8])).argmax(1) == labels[i : i + 8]).sum())
        for i in range(0, 72, 8)
    )
    assert right / 72 == pytest.approx(accuracy(lines[-1]) / 100, abs=0.07)
    assert 108 == Trainer.resume(tmp_path / "run", device="host").steps


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--trainable", "*.conv*"), "matches none of the 4-bit linear layers"),
        (("--out", "nowhere/tuned.pte"), "The folder nowhere"),
        (("--data", "x.npy", "x.npy"), "expected shape [8], received [8, 64]"),
        (("--lr", "inf"), "expected lr >= 0"),
    ],
)
def test_mistakes_are_sentences(
    command: Command, fixtures: Path, data: tuple[Path, Path], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], sentence: str,
) -> None:  # fmt: skip
    """A mistake is told in a sentence, and no file is written."""
    monkeypatch.chdir(tmp_path)
    ended = command(
        "train", fixtures / "q4_mlp_batch8.pte", "--data", *data, "--out", "tuned.pte",
        "--device", "host", *arguments,
    )  # fmt: skip
    assert 1 == ended.status
    assert sentence in ended.err.replace("\n", " ")
    assert not (tmp_path / "tuned.pte").exists()


def test_rows_that_do_not_pair_are_refused(
    command: Command, fixtures: Path, data: tuple[Path, Path], tmp_path: Path
) -> None:
    """Inputs and labels of different lengths."""
    np.save(tmp_path / "short.npy", np.zeros(5, np.int32))
    ended = command(
        "train", fixtures / "q4_mlp_batch8.pte", "--data", data[0], tmp_path / "short.npy",
        "--out", tmp_path / "tuned.pte", "--device", "host",
    )  # fmt: skip
    assert 1 == ended.status
    assert "they need as many rows" in ended.err


def test_too_few_rows_for_a_batch_are_refused(
    command: Command, fixtures: Path, tmp_path: Path
) -> None:
    """Five rows are no batch of eight."""
    np.save(tmp_path / "x.npy", np.zeros((5, 64), np.float32))
    np.save(tmp_path / "y.npy", np.zeros(5, np.int32))
    ended = command(
        "train", fixtures / "q4_mlp_batch8.pte", "--data", tmp_path / "x.npy", tmp_path / "y.npy",
        "--out", tmp_path / "tuned.pte", "--device", "host",
    )  # fmt: skip
    assert 1 == ended.status
    assert "takes batches of 8, received 5 rows" in ended.err


def test_plot_is_drawn_or_refused_before_training(
    command: Command, fixtures: Path, data: tuple[Path, Path], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Without matplotlib the command says so at once."""
    monkeypatch.setattr("nybble.cli.curve.find_spec", lambda name: None)
    ended = command(
        "train", fixtures / "q4_mlp_batch8.pte", "--data", *data, "--out", tmp_path / "tuned.pte",
        "--device", "host", "--plot", tmp_path / "loss.png",
    )  # fmt: skip
    assert 1 == ended.status
    assert "pip install matplotlib" in ended.err
    assert not (tmp_path / "tuned.pte").exists()


def test_curve_shows_the_range_of_the_values() -> None:
    """Bars reach from the lowest value, an eighth high, to the highest; both are labels."""
    text = draw_curve([2.4, 2.3, 2.2, 2.0], height=4)
    assert [
        "   2.4000 │█",
        "          │██▁",
        "          │███",
        "   2.0000 │███▁",
        "          └──── 4 steps",
    ] == text.splitlines()


def test_curve_falls_back_to_ascii() -> None:
    """An encoding without blocks or lines gets characters that every one has."""
    for encoding in ("ascii", "cp1252", "cp437", "unknown"):
        assert [
            "   2.4000 |#",
            "          |#:",
            "   2.0000 |##.",
            "          +--- 3 steps",
        ] == draw_curve([2.4, 2.2, 2.0], height=3, encoding=encoding).splitlines()


@pytest.mark.parametrize("columns", [40, 79])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e12, -1e5])
def test_curve_keeps_to_its_columns(columns: int, scale: float) -> None:
    """No line is wider, however many and large the values are."""
    for count in (1, 7, 300, 12345):
        lines = draw_curve([scale * (i + 1) for i in range(count)], columns).splitlines()
        assert columns >= max(map(len, lines))
        assert 9 == len(lines)
        assert f" {count} step" in lines[-1]


def test_curve_of_equal_values_is_flat() -> None:
    """No range to show: one low line, its value beside it."""
    lines = draw_curve([0.5, 0.5]).splitlines()
    assert "   0.5000 │▁▁" == lines[-2]
    assert ["          │"] * 7 == lines[:-2]


def test_curve_of_nothing_finite_is_empty() -> None:
    """NaN draws nothing."""
    assert "" == draw_curve([float("nan")])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--out", "{folder}/tuned.bin"], "ends in .pte"),
        (["--out", "{folder}"], "ends in .pte"),
        (["--checkpoint", "{folder}/x.npy"], "x.npy is a file: name a folder"),
        (["--data", "{folder}/a.npz", "{folder}/y.npy"], "expected two .npy files"),
    ],
)
def test_what_cannot_be_written_or_read_is_refused_before_training(
    command: Command, fixtures: Path, data: tuple[Path, Path], tmp_path: Path,
    options: list[str], sentence: str,
) -> None:  # fmt: skip
    """No epoch is spent on a file that cannot be written at the end."""
    np.savez(tmp_path / "a.npz", np.zeros((8, 64), np.float32))
    given = {"--data": [str(path) for path in data], "--out": [str(tmp_path / "tuned.pte")]}
    given[options[0]] = [text.format(folder=tmp_path) for text in options[1:]]
    words = [word for name, values in given.items() for word in (name, *values)]
    ended = command("train", fixtures / "q4_mlp_batch8.pte", *words, "--device", "host")
    assert 1 == ended.status
    assert sentence in " ".join(ended.err.split())
    assert "training" not in ended.err


@pytest.mark.parametrize("pair", ["--data", "--validation"])
def test_a_pair_of_files_does_not_swallow_an_option(
    command: Command, data: tuple[Path, Path], pair: str
) -> None:
    """One file where two belong is told as that, and not as an absent file --out."""
    first = ("--data", *data) if pair == "--validation" else ()
    ended = command("train", "x.pte", *first, pair, data[0], "--out", "t.pte")
    assert 2 == ended.status
    told = " ".join(ended.err.split())
    assert f"{pair} takes two files, inputs and labels" in told
    assert "stands the option --out" in told


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--epochs", "0"), "expected a whole number of at least 1, received '0'"),
        (("--lr", "-1"), "expected a number of at least 0, received '-1'"),
        (("--lr", "nan"), "expected a number of at least 0, received 'nan'"),
        (("--loss", "foo"), "expected cross_entropy or mse, received 'foo'"),
    ],
)
def test_a_wrong_value_is_told_with_what_was_expected(
    command: Command, data: tuple[Path, Path], options: tuple[str, ...], sentence: str
) -> None:
    """In the words of the command line, not of a library that parses it."""
    ended = command("train", "x.pte", "--data", *data, "--out", "t.pte", *options)
    assert 2 == ended.status
    assert sentence in " ".join(ended.err.split())


def test_external_files_and_the_policy_reach_the_loader(
    command: Command, fixtures: Path, data: tuple[Path, Path], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Train loads as the other commands do; codes that cannot be saved are refused at once."""
    given: dict[str, Any] = {}
    load = nybble.load

    def spy(file: Path, **options: Any) -> nybble.Program:
        given.update(options)
        return load(file, device="host")

    def save(*_: Any) -> None:
        raise nybble.NybbleError("the weights are not in the program")

    monkeypatch.setattr(nybble, "load", spy)
    monkeypatch.setattr(Trainer, "save", save)
    external = tmp_path / "weights.ptd"
    external.touch()
    ended = command(
        "train", fixtures / "q4_mlp_batch8.pte", "--data", *data, "--out", tmp_path / "t.pte",
        "--external", external, "--on-unsupported", "error",
    )  # fmt: skip
    assert ((external,), "error") == (given["external"], given["on_unsupported"])
    assert (1, "") == (ended.status, ended.out)
    assert "Error: the weights are not in the program" in ended.err
    assert "training" not in ended.err


def test_steps_that_are_not_finite_end_the_training_or_are_left_out(
    command: Command, fixtures: Path, data: tuple[Path, Path], tmp_path: Path
) -> None:
    """A NaN in one row: an error that names the step, or with ``count`` steps that are told."""
    x = np.load(data[0])
    x[5, 3] = np.nan
    np.save(data[0], x)
    out = tmp_path / "tuned.pte"
    arguments = (
        "train", fixtures / "q4_mlp_batch8.pte", "--data", *data, "--out", out, "--epochs", "4",
        "--device", "host", "--validation", *data,
    )  # fmt: skip
    ended = command(*arguments)
    assert 1 == ended.status
    assert "NaN or infinite; the step was not applied" in ended.err
    assert not out.exists()

    ended = command(*arguments, "--on-nonfinite", "count")
    assert 0 == ended.status, ended.err
    assert re.search(r"^36 steps in \d+\.\d s, [34] of them not applied$", ended.err, re.MULTILINE)
    assert out.exists()


def test_an_interrupt_says_what_was_written_and_what_goes_on(
    command: Command,
    fixtures: Path,
    data: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No program is written, and the checkpoint of the last whole epoch is named."""
    step, begun = Trainer.step, iter(range(14))

    def interrupted(trainer: Trainer, *batch: Any) -> Any:
        if next(begun, None) is None:
            raise KeyboardInterrupt
        return step(trainer, *batch)

    monkeypatch.setattr(Trainer, "step", interrupted)
    out, run = tmp_path / "tuned.pte", tmp_path / "run"
    ended = command(
        "train", fixtures / "q4_mlp_batch8.pte", "--data", *data, "--out", out,
        "--device", "host", "--checkpoint", run,
    )  # fmt: skip
    assert 130 == ended.status
    assert f"interrupted after 14 of 27 steps: {out} was not written" in ended.err
    assert f"`nybble train --resume {run}` goes on from the checkpoint after step 9." in ended.err
    assert not out.exists()
    assert 9 == Trainer.resume(run).steps


@pytest.mark.parametrize("option", ["--data", "--validation"])
def test_a_label_that_is_no_class_is_named_by_its_row(
    command: Command, arguments: tuple[Any, ...], data: tuple[Path, Path], tmp_path: Path,
    option: str,
) -> None:  # fmt: skip
    """Its place in the file, not in the batch into which it was drawn; before any step."""
    labels = np.load(data[1])
    labels[[61, 70]] = 10, 11
    np.save(tmp_path / "bad.npy", labels)
    ended = command(*arguments, option, data[0], tmp_path / "bad.npy")
    assert (1, "") == (ended.status, ended.out)
    assert (
        f"{tmp_path / 'bad.npy'}: row 61 (counted from 0) holds 10, which is no class; the "
        "program's output has 10, 0 to 9" in " ".join(ended.err.split())
    )
    assert not (tmp_path / "tuned.pte").exists()


def test_too_few_rows_are_refused_where_others_are_evaluated_on(
    command: Command, arguments: tuple[Any, ...], data: tuple[Path, Path], tmp_path: Path
) -> None:
    """No program is written after no step."""
    for name, path in zip("xy", data, strict=True):
        np.save(tmp_path / f"few_{name}.npy", np.load(path)[:5])
    few = (tmp_path / "few_x.npy", tmp_path / "few_y.npy")
    ended = command(*arguments, "--validation", *data, "--data", *few)
    assert 1 == ended.status
    assert "takes batches of 8, received 5 rows" in ended.err
    assert not (tmp_path / "tuned.pte").exists()
