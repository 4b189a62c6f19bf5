"""Kinds of arguments, asked of what callers passed whatever its declared type."""

from __future__ import annotations

import math
from numbers import Integral, Real
from pathlib import Path

from nybble.errors import NybbleError

__all__ = ["is_integer", "is_number", "refuse_missing_folder"]


def is_integer(value: object, least: int) -> bool:
    """Whether ``value`` is an integer (numpy's too) of at least ``least``."""
    return isinstance(value, Integral) and int(value) >= least


def is_number(value: object) -> bool:
    """Whether ``value`` is a finite real number, numpy's too."""
    return isinstance(value, Real) and math.isfinite(float(value))


def refuse_missing_folder(path: Path, what: str) -> None:
    """Raise NybbleError where the folder of a file that is to be written does not exist."""
    if not path.parent.is_dir():
        raise NybbleError(f"The folder {path.parent} of the {what} {path} does not exist: make it.")
