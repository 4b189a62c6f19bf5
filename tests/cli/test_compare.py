"""``nybble compare``: what it prints, and which exit status tells agreement."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nybble
from nybble.compare_report import CompareReport

Command = Callable[..., Any]
ESCAPE = "\x1b"
TWO = ("--device", "host", "--device", "webgpu:0")


@pytest.mark.device
def test_two_devices_are_compared_call_by_call(command: Command, fixtures: Path) -> None:
    """A row a call with both devices' times, the sentence last, status 0; no colours in a pipe."""
    ended = command("compare", fixtures / "small_cnn.pte", *TWO)
    assert 0 == ended.status, ended.err
    assert "et_vk.q8ta_conv2d" in ended.out
    assert "host | rows_float" in ended.out
    last = ended.out.splitlines()[-1]
    assert last.startswith("forward on host and webgpu:0: all 11 calls agree, 10 of them bit for")
    assert ESCAPE not in ended.out + ended.err
    assert "[green]" not in ended.out


@pytest.mark.device
def test_webgpu_and_vulkan_are_compared_without_options(command: Command, fixtures: Path) -> None:
    """The two ways to a GPU are what is compared where nothing is said."""
    ended = command("compare", fixtures / "small_cnn.pte")
    assert 0 == ended.status, ended.err
    assert "forward on webgpu:0 and vulkan:0: all 11 calls agree" in ended.out


@pytest.mark.device
def test_the_table_fits_a_terminal_of_80_columns(
    command: Command, fixtures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No row is wider than the terminal, and no time is cut."""
    from rich.console import Console

    from nybble.cli import app

    monkeypatch.setattr(app, "stdout", lambda: Console(width=80, highlight=False))
    out = command("compare", fixtures / "q4_cached_attention.pte").out
    *rows, summary = out.splitlines()
    assert "forward on webgpu:0 and vulkan:0" in summary
    assert rows
    assert 80 >= max(map(len, rows))
    assert "…" not in out


def test_a_difference_is_exit_status_1(
    command: Command, fixtures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What differs is the command's answer, so a script can see it."""
    given: dict[str, Any] = {}

    def differs(file: Path, *inputs: Any, **options: Any) -> CompareReport:
        given.update(options, file=file, inputs=inputs)
        return CompareReport("forward", ("a", "b"), (), (), (None, None))

    monkeypatch.setattr(nybble, "compare", differs)
    monkeypatch.setattr(CompareReport, "__bool__", lambda _: False)
    archive = fixtures / "pointwise.npz"
    ended = command("compare", fixtures / "pointwise.pte", *TWO, "-i", archive, "-m", "forward")
    assert 1 == ended.status
    assert fixtures / "pointwise.pte" == given["file"]
    assert ("host", "webgpu:0") == given["devices"]
    assert "forward" == given["method"]
    with np.load(archive) as stored:
        np.testing.assert_array_equal(stored["input_0"], given["inputs"][0])


@pytest.mark.parametrize(
    ("devices", "sentence"),
    [
        (("host",), "compare needs two devices, and received only host: give --device twice"),
        (("host", "host"), "'host' and 'host' are the same device, host"),
        (("host", "vulkan:77"), "device 'vulkan:77' was not found"),
    ],
)
def test_devices_that_cannot_be_compared_are_one_sentence(
    command: Command, fixtures: Path, devices: tuple[str, ...], sentence: str
) -> None:
    """One device, the same twice, or one that is missing: a sentence on stderr and status 1."""
    options = [word for name in devices for word in ("--device", name)]
    ended = command("compare", fixtures / "pointwise.pte", *options)
    assert (1, "") == (ended.status, ended.out)
    assert ended.err.startswith("Error: ")
    assert sentence in " ".join(ended.err.split())
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("name", ["run", "verify", "compare", "profile", "train", "demo"])
def test_every_device_option_names_all_kinds(command: Command, name: str) -> None:
    """Help lists what a device may be called, one of several included."""
    page = " ".join(command(name, "--help").out.split())
    for word in ("auto", "vulkan", "webgpu", "vulkan:1", "host"):
        assert word in page
