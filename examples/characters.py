"""The characters that the example's language model reads and writes, as token numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["ALPHABET", "decode", "encode", "windows"]

ALPHABET = "".join(map(chr, range(32, 127))) + "\n"
"""Printable ASCII and the end of a line; a character's token is its place in this string."""

_PLAIN: dict[str, str | int | None] = {
    "\t": "    ",
    "\N{LEFT SINGLE QUOTATION MARK}": "'",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{LEFT DOUBLE QUOTATION MARK}": '"',
    "\N{RIGHT DOUBLE QUOTATION MARK}": '"',
    "\N{EN DASH}": "-",
    "\N{EM DASH}": "--",
    "\N{HORIZONTAL ELLIPSIS}": "...",
}


def encode(text: str) -> NDArray[np.int64]:
    """Tokens [n] of ``text``; characters without a token or an ASCII likeness are left out."""
    plain = text.translate(str.maketrans(_PLAIN))
    known = {character: token for token, character in enumerate(ALPHABET)}
    return np.array([known[c] for c in plain if c in known], np.int64)


def decode(tokens: NDArray[np.int64]) -> str:
    """The text of ``tokens`` [n]."""
    return "".join(ALPHABET[token] for token in tokens)


def windows(
    tokens: NDArray[np.int64], batch: int, length: int, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Random windows [batch, length] of ``tokens``, and the token after each of theirs.

    Raises ValueError if the text is not longer than a window.
    """
    if len(tokens) <= length:
        raise ValueError(
            f"the text has {len(tokens)} known characters; it needs more than {length}"
        )
    starts = generator.integers(0, len(tokens) - length, batch)
    rows = tokens[starts[:, np.newaxis] + np.arange(length + 1)]
    return rows[:, :-1], rows[:, 1:].astype(np.int32)
