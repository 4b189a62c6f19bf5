"""Views, copies, casts, permutations and other rearrangements of elements."""

from nybble.ops.shape import casts, moves, repeats, views

__all__ = ["casts", "moves", "repeats", "views"]
