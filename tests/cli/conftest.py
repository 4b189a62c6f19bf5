"""Runs the command line as a process would see it, without starting one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nybble.cli import main


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it printed."""

    status: int
    out: str
    err: str


Command = Callable[..., Ended]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Return a function that runs one command into a pipe."""
    monkeypatch.delenv("NYBBLE_DEBUG", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    def run(*arguments: str | Path) -> Ended:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        code = ended.value.code
        return Ended(code if isinstance(code, int) else int(code is not None), *printed)

    return run


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """Return the folder of the exported programs."""
    return Path(__file__).parents[1] / "fixtures"


@pytest.fixture
def data(tmp_path: Path) -> tuple[Path, Path]:
    """Inputs and labels that a linear rule relates, 77 rows: no whole number of batches."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((77, 64)).astype(np.float32)
    labels = (x @ rng.standard_normal((64, 10))).argmax(1)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", labels)
    return tmp_path / "x.npy", tmp_path / "y.npy"


@pytest.fixture
def arguments(fixtures: Path, data: tuple[Path, Path], tmp_path: Path) -> tuple[Any, ...]:
    """A training of 27 steps, with no option at its default where one decides the result."""
    return (
        "train", fixtures / "q4_mlp_batch8.pte", "--data", *data, "--out", tmp_path / "tuned.pte",
        "--device", "host", "--lr", "0.01", "--weight-decay", "0.1", "--seed", "3",
    )  # fmt: skip
