"""Kinds of arguments, asked of what callers passed whatever its declared type."""

from __future__ import annotations

import math
from numbers import Integral, Real

__all__ = ["is_integer", "is_number"]


def is_integer(value: object, least: int) -> bool:
    """Whether ``value`` is an integer (numpy's too) of at least ``least``."""
    return isinstance(value, Integral) and int(value) >= least


def is_number(value: object) -> bool:
    """Whether ``value`` is a finite real number, numpy's too."""
    return isinstance(value, Real) and math.isfinite(float(value))
