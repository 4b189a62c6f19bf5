"""Where the command line prints: results on stdout, everything else on stderr."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TextIO

from rich.console import Console
from rich.text import Text

__all__ = ["print_error", "show_warnings", "stderr", "stdout"]

_PIPE_COLUMNS = 200


def stdout() -> Console:
    """Return a console for results. In a pipe: no colours, and wide enough to wrap nothing."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_PIPE_COLUMNS)


def stderr() -> Console:
    """Return a console for progress, warnings and errors."""
    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


def print_error(message: str, details: Sequence[str] = ()) -> None:
    """Print ``message`` in red, and below it each detail that it does not already hold."""
    console = stderr()
    console.print(Text(f"Error: {message}", "red"))
    for detail in details:
        if detail not in message:
            console.print(Text(f"  {detail}"))


def show_warnings() -> None:
    """Make ``warnings.warn`` print one yellow sentence instead of a file, a line and its source."""

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        del category, filename, lineno, file, line
        stderr().print(Text(f"Warning: {message}", "yellow"))

    warnings.showwarning = show
