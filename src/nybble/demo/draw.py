"""Draws small grey images with characters: half blocks in colour, or shades where there is none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.text import Text

__all__ = ["columns", "draw"]

_SHADES = " ░▒▓█"
_ASCII_SHADES = " .:o@"


def columns(console: Console, width: int) -> int:
    """Return how many columns an image of ``width`` pixels takes on ``console``."""
    return width if _has_colour(console) else 2 * width


def draw(image: NDArray[np.float32], console: Console) -> list[Text]:
    """Draw ``image`` [height, width], values 0 (dark) to 1, as lines of equal width.

    In colour a character is two pixels, one above the other; without, a pixel is two characters.
    """
    if not _has_colour(console):
        shades = _SHADES if console.encoding.startswith("utf") else _ASCII_SHADES
        levels = np.clip(image * len(shades), 0, len(shades) - 1).astype(int)
        return [Text("".join(shades[level] * 2 for level in row)) for row in levels]
    grey = np.clip(image * 255, 0, 255).astype(int)
    if len(grey) % 2:
        grey = np.vstack([grey, np.zeros_like(grey[:1])])
    return [_half_blocks(*pair) for pair in zip(grey[::2], grey[1::2], strict=True)]


def _half_blocks(upper: NDArray[np.int64], lower: NDArray[np.int64]) -> Text:
    line = Text()
    for above, below in zip(upper, lower, strict=True):
        line.append("▀", f"rgb({above},{above},{above}) on rgb({below},{below},{below})")
    return line


def _has_colour(console: Console) -> bool:
    colours = console.color_system is not None and not console.no_color
    return colours and console.encoding.startswith("utf")
