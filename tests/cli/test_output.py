"""What the commands print fits where it goes: encodings, pipes, closed pipes, 80 columns."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table

import nybble
from nybble.compare_report import CallComparison, CallRun, CompareReport, Difference
from nybble.profile import Profile, ProfileRow
from nybble.report_text import Words, table_text

COMMANDS = [
    ("run", "{pte}", "-i", "{npz}", "-d", "host"),
    ("inspect", "{pte}"),
    ("verify", "{pte}", "-d", "host"),
    ("profile", "{pte}", "-d", "host"),
    ("doctor",),
    ("--help",),
    pytest.param(("compare", "{pte}"), marks=pytest.mark.device),
    pytest.param(("demo", "-d", "host"), marks=pytest.mark.slow),
]
commands = pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: arguments[0])


def start(*arguments: str, **environment: str) -> subprocess.Popen[bytes]:
    """Start ``python -m nybble`` with pipes for stdout and stderr."""
    return subprocess.Popen(
        [sys.executable, "-m", "nybble", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
    )


def filled(arguments: tuple[str, ...], fixtures: Path) -> list[str]:
    """Put the paths of a program and its inputs where they are named."""
    paths = {"pte": fixtures / "small_cnn.pte", "npz": fixtures / "small_cnn.npz"}
    return [word.format(**paths) for word in arguments]


def training(folder: Path, fixtures: Path) -> list[str]:
    """Return the arguments of a short training that writes ``tuned.pte``."""
    rng = np.random.default_rng(0)
    np.save(folder / "x.npy", rng.standard_normal((64, 64)).astype(np.float32))
    np.save(folder / "y.npy", rng.integers(0, 10, 64))
    data = (str(folder / "x.npy"), str(folder / "y.npy"))
    program = str(fixtures / "q4_mlp_batch8.pte")
    return ["train", program, "--data", *data, "--out", str(folder / "tuned.pte"), "-d", "host"]


@commands
@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_every_command_prints_in_every_encoding(
    fixtures: Path, arguments: tuple[str, ...], encoding: str
) -> None:
    """Plain ASCII where stdout takes no more, no spaces at the ends of lines, no traceback."""
    out, err = start(
        *filled(arguments, fixtures), PYTHONUTF8="0", PYTHONIOENCODING=encoding
    ).communicate(timeout=120)
    assert b"Traceback" not in err, err.decode()
    assert out
    assert re.search(rb"[ \t]\r?$|[^\r\n\t -~]|\\u", out, re.MULTILINE) is None


@commands
def test_a_pipe_that_its_reader_closes_ends_a_command_quietly(
    fixtures: Path, arguments: tuple[str, ...]
) -> None:
    """No traceback, and no word of Python's about it at exit."""
    process = start(*filled(arguments, fixtures))
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(timeout=120)
    assert b"Traceback" not in err, err.decode()
    assert b"BrokenPipe" not in err, err.decode()


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "ascii"])
def test_training_is_written_and_drawn_in_every_encoding(
    fixtures: Path, tmp_path: Path, encoding: str
) -> None:
    """The curve is of blocks where they can be encoded, else of ASCII; stderr has no empty line."""
    arguments = training(tmp_path, fixtures)
    process = start(*arguments, PYTHONUTF8="0", PYTHONIOENCODING=encoding)
    out, err = process.communicate(timeout=120)
    assert 0 == process.returncode, err.decode()
    nybble.load(tmp_path / "tuned.pte", device="host")
    assert ("█" if encoding == "utf-8" else "+---") in out.decode(encoding)
    assert "\\u" not in out.decode(encoding)
    assert 79 >= max(map(len, out.decode(encoding).splitlines()))
    assert "" not in err.decode(encoding).splitlines()


def test_training_is_written_where_nothing_can_be_printed_after_it(
    fixtures: Path, tmp_path: Path
) -> None:
    """Both pipes are closed while it trains: the file is there all the same."""
    process = start(*training(tmp_path, fixtures), "--epochs", "40", PYTHONUNBUFFERED="1")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith(b"before")
    process.stdout.close()
    process.stderr.close()
    process.wait(timeout=120)
    nybble.load(tmp_path / "tuned.pte", device="host")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_are_no_error(fixtures: Path, tmp_path: Path, closed: str) -> None:
    """A shell may close what nobody reads; the program is written."""
    command = [sys.executable, "-m", "nybble", *map(str, training(tmp_path, fixtures))]
    ended = subprocess.run(
        ["sh", "-c", f'"$@" {closed}', "sh", *command],
        check=False, capture_output=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert 0 == ended.returncode, ended.stderr.decode()
    nybble.load(tmp_path / "tuned.pte", device="host")


def in_80_columns(table: Table) -> str:
    """Return ``table`` as a terminal of 80 columns shows it."""
    console = Console(width=80, color_system=None, force_terminal=False)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


SHAPES = "float32[1, 16, 28, 28] -> float32[1, 16, 14, 14], int32[1, 16, 14, 14]"


def test_comparison_breaks_no_word_in_80_columns() -> None:
    """Two devices: every name, kernel and type is in one piece, and the numbers are explained."""
    runs = (
        CallRun("webgpu:0", "rows_float 1/2", 1234e-6, None),
        CallRun("vulkan:0", "quantize_planes", 1e-6, Difference(6.6e-8, 1e-5, None)),
    )
    name = "quantized_decomposed.quantize_per_tensor.default"
    calls = (CallComparison(name, "x", SHAPES, True, runs),) * 12
    report = CompareReport("forward", ("webgpu:0", "vulkan:0"), calls, (), (0.015, 1e-4))
    table = report.table()
    table.title = None
    words = in_80_columns(table).split()
    assert 80 >= max(map(len, in_80_columns(table).splitlines()))
    for word in ("quantize_per_tensor:", "rows_float", "1/2", "|", "quantize_planes", "->"):
        assert 12 == words.count(word)
    assert 12 == words.count("float32[1,16,28,28]") == words.count("int32[1,16,14,14]")
    assert "2/3: the second of the operator's three kernels" in str(report)


def test_profile_breaks_words_at_joints_only() -> None:
    """A name that does not fit its column is broken after an underscore, a type is not."""
    row = ProfileRow("max_pool2d_with_indices max_pool2d", SHAPES, 1e-3, 0.0, 10**7, 10**7, True)
    text = in_80_columns(Profile("forward", "host", (row,) * 12, 1.0, 0).table())
    assert 80 >= max(map(len, text.splitlines()))
    assert re.search(r"\bmax_pool2d_(with_)? ", text)
    assert not re.search(r"\bindice\b", text)
    assert 12 == text.split().count("float32[1,16,28,28]")


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (40, ["int8[1,2] -> max_pool2d"]),
        (12, ["int8[1,2] ->", "max_pool2d"]),
        (7, ["int8[1,", "2] ->", "max_", "pool2d"]),
        (3, ["int", "8[1", ",2]", "->", "max", "_", "poo", "l2d"]),
    ],
)
def test_words_are_broken_at_spaces_then_at_joints(width: int, lines: list[str]) -> None:
    """What fits stays together; only a piece without a joint is cut anywhere."""
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(Words("int8[1,2] -> max_pool2d"))
    assert lines == capture.get().split("\n")[:-1]


def test_a_report_as_text_has_no_padding() -> None:
    """Lines end where their text ends."""
    table = Table("a", "b", box=None)
    table.add_row("x", "")
    table.add_row("", "long")
    assert all(line == line.rstrip() for line in table_text(table).splitlines())


def test_host_rows_of_a_profile_count_constants(fixtures: Path) -> None:
    """The weights of a linear call are bytes that it reads, on the host as on a GPU."""
    program = nybble.load(fixtures / "q4_linear.pte", device="host")
    method = program["forward"]
    (call,) = (call for call in method.graph.calls if "linear" in call.operator.name)
    tensors = (*call.inputs.values(), *call.outputs)
    x = np.zeros(method.inputs[0].shape, np.float32)
    (row,) = (row for row in method.profile(x).rows if "linear" in row.label)
    constants = [value.constant for value in call.inputs.values() if value.constant is not None]
    assert constants
    arrays = sum(4 * int(np.prod(v.shape)) for v in tensors if v.constant is None)
    assert arrays + sum(constant.nbytes for constant in constants) == row.bytes_moved
