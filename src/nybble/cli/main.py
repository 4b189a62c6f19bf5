"""Runs the command line: what a failure looks like, and which exit status it has."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from nybble.cli.consoles import print_error, show_warnings, write_what_can_be_encoded
from nybble.errors import NybbleError, UnsupportedProgramError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; ``arguments`` default to the process's own.

    Always ends in ``SystemExit``: 0 is success; 1 a :class:`NybbleError` or a file that cannot be
    read or written (a sentence on stderr), or a failed verification; 2 a command line that cannot
    be understood, whatever files there are; 130 an interrupt. With ``NYBBLE_DEBUG=1`` in the
    environment a NybbleError is raised: a traceback.
    """
    write_what_can_be_encoded()
    show_warnings()
    try:
        # Here, where an interrupt is expected: it takes some tenths of a second.
        from nybble.cli.app import app

        app(args=None if arguments is None else list(arguments), prog_name="nybble")
    except NybbleError as error:
        if os.environ.get("NYBBLE_DEBUG") == "1":
            raise
        calls = error.calls if isinstance(error, UnsupportedProgramError) else ()
        print_error(str(error), calls)
        sys.exit(1)
    except OSError as error:
        print_error(f"{error.filename or 'the system'}: {error.strerror or error}")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
