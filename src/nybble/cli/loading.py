"""Loads the program that a command was given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nybble.errors import NybbleError

if TYPE_CHECKING:
    from nybble.program import Program

__all__ = ["load_program"]


def load_program(
    file: Path, device: str, policy: Any = "host", external: Sequence[Path] | None = None
) -> Program:
    """Load ``file`` and its external constants.

    Raises NybbleError, or OSError, where a file cannot be read, and as :func:`nybble.load` does.
    """
    import nybble

    files = tuple(external or ())
    for path, kind in ((file, "program"), *((item, "external file") for item in files)):
        if path.is_dir():
            raise NybbleError(f"The {kind} {path} is a folder: name a file.")
        if not path.exists():
            raise NybbleError(f"The {kind} {path} does not exist.")
    return nybble.load(file, device=device, on_unsupported=policy, external=files)
