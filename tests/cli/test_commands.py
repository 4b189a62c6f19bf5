"""Every command, on the host device: what it prints, writes and exits with."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.table import Table

import nybble
from nybble.random_inputs import random_inputs

Command = Callable[..., Any]
ESCAPE = "\x1b"


def test_the_version_is_printed(command: Command) -> None:
    """``--version`` prints the package's name and version."""
    ended = command("--version")
    assert (0, f"nybble {nybble.__version__}\n") == (ended.status, ended.out)


def test_every_command_has_a_help_page(command: Command) -> None:
    """The main page lists all commands, and each has a page of its own."""
    page = command("--help").out
    for name in ["run", "inspect", "verify", "compare", "profile", "train", "doctor", "demo"]:
        assert f"\n  {name} " in page
        ended = command(name, "--help")
        assert 0 == ended.status
        assert f"Usage: nybble {name}" in ended.out


def test_run_writes_what_the_program_returns(
    command: Command, fixtures: Path, tmp_path: Path
) -> None:
    """The file holds the array that a call from Python gives, its type, shape and every bit."""
    program = fixtures / "pointwise.pte"
    with np.load(fixtures / "pointwise.npz") as archive:
        x = archive["input_0"]
    np.save(tmp_path / "x.npy", x)
    expected = nybble.load(program, device="host")(x)
    output = tmp_path / "y.npy"
    arguments = ("--input", tmp_path / "x.npy", "--output", output, "--device", "host")
    ended = command("run", program, *arguments)
    assert (0, "") == (ended.status, ended.out), ended.err
    np.testing.assert_array_equal(expected, np.load(output), strict=True)
    assert f"wrote {output}" in ended.err


def test_run_without_output_prints_the_arrays(command: Command, fixtures: Path) -> None:
    """Results go to stdout, with their types and shapes; everything else to stderr."""
    archive = fixtures / "pointwise.npz"
    ended = command("run", fixtures / "pointwise.pte", "-i", archive, "-d", "host")
    assert 0 == ended.status, ended.err
    assert "float32[1, 16, 12, 12]" in ended.out
    assert ESCAPE not in ended.out + ended.err
    assert "host" in ended.err


@pytest.mark.device
def test_run_tells_the_first_calls_time_and_that_of_warm_ones(
    command: Command, fixtures: Path
) -> None:
    """On a GPU the first call compiles and some more warm up; the host compiles nothing."""
    archive = fixtures / "pointwise.npz"
    warm = command("run", fixtures / "pointwise.pte", "-i", archive, "-d", "webgpu").err
    told = r"^webgpu:0: .*: [\d.]+ ms, the first call; [\d.]+ ms, the median of (\d+) more$"
    found = re.search(told, warm)
    assert found
    assert 1 < int(found[1]) <= 20
    once = command("run", fixtures / "pointwise.pte", "-i", archive, "-d", "host").err
    assert re.search(r"^host: .*: [\d.]+ ms, the first call$", once)


@pytest.mark.device
def test_run_writes_the_first_calls_results(
    command: Command, fixtures: Path, tmp_path: Path
) -> None:
    """The calls that are timed after it change the program's states, not what is written."""
    file = fixtures / "q4_cached_attention.pte"
    program = nybble.load(file, device="webgpu")
    inputs = random_inputs(program["forward"].inputs, 0)
    names = [spec.name for spec in program["forward"].inputs]
    arrays = dict(zip(names, inputs, strict=True))
    np.savez(tmp_path / "x.npz", **arrays)  # type: ignore[arg-type]  # numpy's stub
    expected = program(*inputs)
    output = tmp_path / "y.npy"
    ended = command("run", file, "-i", tmp_path / "x.npz", "-d", "webgpu", "-o", output)
    assert 0 == ended.status, ended.err
    assert ended.err.index("wrote") < ended.err.index("the first call")
    np.testing.assert_array_equal(expected, np.load(output), strict=True)


@pytest.mark.device
def test_run_does_not_repeat_a_slow_program(
    command: Command, fixtures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where one more call fills the time there is, it is the only one, and told as that."""
    monkeypatch.setattr("nybble.cli.app._FURTHER_SECONDS", 1e-9)
    archive = fixtures / "pointwise.npz"
    ended = command("run", fixtures / "pointwise.pte", "-i", archive, "-d", "webgpu")
    assert re.search(r"ms, the first call; [\d.]+ ms, the second$", ended.err)


def test_run_calls_the_method_that_is_named(
    command: Command, fixtures: Path, tmp_path: Path
) -> None:
    """Each method of a program can be called; an unknown one is answered with the known ones."""
    file = fixtures / "two_methods.pte"
    names = nybble.load(file, device="host").methods
    assert len(names) == 2
    ended = command("run", file, "-m", "absent", "-d", "host")
    assert 1 == ended.status
    assert all(name in ended.err for name in names)
    for name in names:
        arrays = {
            spec.name: np.zeros(spec.shape, spec.dtype)
            for spec in nybble.load(file, device="host")[name].inputs
        }
        np.savez(tmp_path / "x.npz", **arrays)  # type: ignore[arg-type]  # numpy's stub
        assert 0 == command("run", file, "-m", name, "-i", tmp_path / "x.npz", "-d", "host").status


def test_inspect_prints_the_programs_text(command: Command, fixtures: Path) -> None:
    """What ``inspect`` prints is ``str(program)``, whole lines, no colours."""
    file = fixtures / "small_cnn.pte"
    ended = command("inspect", file)
    assert (0, f"{nybble.load(file, device='host')}\n") == (ended.status, ended.out)
    assert ESCAPE not in ended.out


def test_verify_agrees_on_the_host(command: Command, fixtures: Path) -> None:
    """The host is told to have compared nothing, and the table names the calls."""
    ended = command("verify", fixtures / "pointwise.pte", "--device", "host")
    assert 0 == ended.status, ended.err
    assert "q8ta_conv2d_pw" in ended.out
    assert ESCAPE not in ended.out
    assert "[green]" not in ended.out
    assert (
        "forward on host: the references themselves; nothing was compared"
        == (ended.out.splitlines()[-1])
    )


def test_verify_exits_with_1_when_a_call_differs(
    command: Command, fixtures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A difference is the answer of the command, so a script can see it."""

    class Differs:
        summary = "1 of 3 calls differs"

        def __bool__(self) -> bool:
            return False

        def table(self) -> Table:
            return Table("call")

    monkeypatch.setattr(nybble.Method, "verify", lambda *_: Differs())
    ended = command("verify", fixtures / "pointwise.pte", "--device", "host")
    assert 1 == ended.status
    assert "1 of 3 calls differs" in ended.out


def test_profile_prints_a_table_and_writes_a_trace(
    command: Command, fixtures: Path, tmp_path: Path
) -> None:
    """The trace is JSON that holds events, as Perfetto reads it."""
    trace = tmp_path / "t.json"
    ended = command("profile", fixtures / "pointwise.pte", "-d", "host", "--trace", trace)
    assert 0 == ended.status, ended.err
    assert ended.out.strip()
    content = json.loads(trace.read_text(encoding="utf-8"))
    assert content["traceEvents"] if isinstance(content, dict) else content


def test_profile_refuses_a_trace_in_an_absent_folder(
    command: Command, fixtures: Path, tmp_path: Path
) -> None:
    """The folder is looked for before anything is measured."""
    trace = tmp_path / "absent" / "t.json"
    ended = command("profile", fixtures / "pointwise.pte", "-d", "host", "--trace", trace)
    assert 1 == ended.status
    assert "does not exist" in ended.err


def test_a_trace_that_cannot_be_written_is_one_sentence_and_exit_1(
    command: Command, fixtures: Path, tmp_path: Path
) -> None:
    """What the system refuses is told with the file's name, without a traceback."""
    ended = command("profile", fixtures / "pointwise.pte", "-d", "host", "--trace", tmp_path)
    assert 1 == ended.status
    assert ended.err.startswith(f"Error: {tmp_path}: ")


def test_doctor_exits_with_1_exactly_when_something_is_missing(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script can ask whether the machine is complete."""
    from nybble import doctor

    for status, expected in (("ok", 0), ("note", 0), ("missing", 1)):
        check = SimpleNamespace(name="WebGPU", status=status, detail="detail", remedy="remedy")
        monkeypatch.setattr(doctor, "examine", lambda check=check: (check,))
        ended = command("doctor")
        assert expected == ended.status
        assert "detail" in ended.out


@pytest.mark.parametrize(
    ("name", "word"), [("not_delegated", "export"), ("xnnpack", "VulkanPartitioner")]
)
def test_a_program_that_cannot_run_is_one_sentence_and_exit_1(
    command: Command, fixtures: Path, name: str, word: str
) -> None:
    """A program for another backend is refused on stderr, with what to do, and no traceback."""
    ended = command("inspect", fixtures / f"{name}.pte")
    assert (1, "") == (ended.status, ended.out)
    assert ended.err.startswith("Error: ")
    assert word in ended.err
    assert "Traceback" not in ended.err


def test_a_damaged_program_is_one_sentence_and_exit_1(
    command: Command, fixtures: Path, tmp_path: Path
) -> None:
    """Half a file is refused, whatever the command."""
    data = (fixtures / "pointwise.pte").read_bytes()
    half = tmp_path / "half.pte"
    half.write_bytes(data[: len(data) // 2])
    for name in ("inspect", "run", "verify", "profile"):
        ended = command(name, half)
        assert (1, "") == (ended.status, ended.out)
        assert ended.err.startswith("Error: ")


def test_a_wrong_input_shape_is_one_sentence_and_exit_1(
    command: Command, fixtures: Path, tmp_path: Path
) -> None:
    """The contract's own error reaches the user."""
    np.save(tmp_path / "x.npy", np.zeros((1, 2, 3), np.float32))
    file = fixtures / "pointwise.pte"
    ended = command("run", file, "-i", tmp_path / "x.npy", "-d", "host")
    assert (1, "") == (ended.status, ended.out)
    assert "12" in ended.err


def test_debugging_shows_the_traceback(fixtures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With NYBBLE_DEBUG=1 the error itself is raised."""
    from nybble.cli import main

    monkeypatch.setenv("NYBBLE_DEBUG", "1")
    with pytest.raises(nybble.NybbleError):
        main(["inspect", str(fixtures / "not_delegated.pte")])


@pytest.mark.parametrize(
    "arguments",
    [
        ("run",),
        ("unknown",),
        ("inspect", "--unknown", "f.pte"),
        ("verify", "f.pte", "--seed", "minus"),
        ("verify", "f.pte", "--seed", "-1"),
        ("train", "f.pte", "--seed", "x"),
    ],
)
def test_a_wrong_command_line_exits_with_2(command: Command, arguments: tuple[str, ...]) -> None:
    """Missing, absent or unknown arguments are usage errors, told on stderr."""
    ended = command(*arguments)
    assert (2, "") == (ended.status, ended.out)
    assert "Usage: nybble" in ended.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("run", "absent.pte"), "The program absent.pte does not exist."),
        (("inspect", "."), "The program . is a folder: name a file."),
        (("run", "{pte}", "-i", "absent.npy"), "The input absent.npy does not exist."),
        (("verify", "{pte}", "--external", "a.ptd"), "The external file a.ptd does not exist."),
        (("compare", "absent.pte"), "The program absent.pte does not exist."),
        (("train", "absent.pte", "--data", "x.npy", "y.npy", "--out", "t.pte"), "absent.pte does"),
        (("train", "{pte}", "--data", "x.npy", "y.npy", "--out", "t.pte"), "x.npy does not exist"),
    ],
)
def test_a_file_that_does_not_exist_is_one_sentence_and_exit_1(
    command: Command, fixtures: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    """One rule for every file: the command line is understood, what it asks for fails."""
    words = [word.format(pte=fixtures / "pointwise.pte") for word in arguments]
    ended = command(*words)
    assert (1, "") == (ended.status, ended.out)
    assert ended.err.startswith("Error: ")
    assert sentence in " ".join(ended.err.split())
    assert "Usage" not in ended.err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--on-unsupported", "foo"), "expected host or error, received 'foo'"),
        (("--seed", "-1"), "expected a whole number of at least 0, received '-1'"),
        (("--seed", "1.5"), "expected a whole number of at least 0, received '1.5'"),
    ],
)
def test_a_wrong_value_is_told_with_what_was_expected(
    command: Command, fixtures: Path, options: tuple[str, ...], sentence: str
) -> None:
    """In the words of the command line, not of a library that parses it."""
    ended = command("verify", fixtures / "pointwise.pte", *options)
    assert (2, "") == (ended.status, ended.out)
    assert sentence in " ".join(ended.err.split())
    assert "Value error" not in ended.err


@pytest.mark.parametrize("columns", ["50", "80"])
def test_no_summary_in_the_help_is_cut(
    command: Command, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    """The list of commands shows each one's first sentence whole, whatever the width."""
    monkeypatch.setenv("COLUMNS", columns)
    page = command("--help").out
    commands = page.partition("Commands:")[2]
    assert commands
    assert not re.search(r"\.\.\.|…", commands)
    assert "write the program back with new codes." in " ".join(page.split())


@pytest.mark.parametrize(
    "name", ["run", "inspect", "verify", "compare", "profile", "train", "doctor", "demo"]
)
def test_options_are_described_in_the_same_words(command: Command, name: str) -> None:
    """Numbers are N or X, and every command that takes a device names dawn too."""
    page = " ".join(command(name, "--help").out.split())
    assert "range>" not in page
    assert ("--device" in page) == ("dawn (where the package wgpudawn is installed)" in page)


def test_the_installed_module_runs_as_a_process(fixtures: Path) -> None:
    """A real process, its output closed early by its reader, ends without a traceback."""
    code = "from nybble.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "inspect", str(fixtures / "small_cnn.pte")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate(timeout=60)
    assert b"Traceback" not in err, err.decode()
