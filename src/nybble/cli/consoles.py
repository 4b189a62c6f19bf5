"""Where the command line prints: results on stdout, everything else on stderr."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Sequence
from typing import IO, TextIO, cast

from rich.console import Console
from rich.text import Text

from nybble.report_text import without_padding

__all__ = ["print_error", "show_warnings", "stderr", "stdout", "write_what_can_be_encoded"]

_PIPE_COLUMNS = 200


class _Unpadded:
    """A stream that is given whole lines, and writes them without spaces at their ends."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.encoding = stream.encoding

    def write(self, text: str) -> int:
        """Write ``text``."""
        self._stream.write(without_padding(text))
        return len(text)

    def flush(self) -> None:
        """Pass on what the stream holds back."""
        self._stream.flush()

    def isatty(self) -> bool:
        """Tell that this is no terminal."""
        return False


def stdout() -> Console:
    """Return a console for results.

    In a pipe: no colours, wide enough to wrap nothing, no spaces at the ends of lines.
    """
    if sys.stdout is None:
        return Console(file=io.StringIO(), quiet=True)
    console = Console(highlight=False, emoji=False)
    if console.is_terminal:
        return console
    file = cast("IO[str]", _Unpadded(sys.stdout))
    return Console(highlight=False, emoji=False, width=_PIPE_COLUMNS, file=file)


def stderr() -> Console:
    """Return a console for progress, warnings and errors."""
    if sys.stderr is None:
        return Console(file=io.StringIO(), quiet=True)
    return Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


def write_what_can_be_encoded() -> None:
    r"""Make stdout write ``\u2588`` for what its encoding lacks, as stderr does, and not fail."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


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
