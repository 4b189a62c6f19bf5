"""Comparisons, logic of truth values and of bits, and selection."""

from nybble.ops.logic import bits, compare, where

__all__ = ["bits", "compare", "where"]
