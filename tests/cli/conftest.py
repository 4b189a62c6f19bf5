"""Runs the command line as a process would see it, without starting one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

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
