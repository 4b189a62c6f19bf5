"""Images drawn with characters."""

from __future__ import annotations

import io

import numpy as np
from rich.console import Console

from nybble.demo.draw import columns, draw

IMAGE = np.array([[0, 0.25, 0.5, 1], [1, 0.5, 0.25, 0], [0, 0, 1, 1]], dtype=np.float32)


def colour_console(encoding: str = "utf-8") -> Console:
    """Return a console that writes colours."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    return Console(file=stream, force_terminal=True, color_system="truecolor", width=80)


def test_a_pipe_gets_shades_two_characters_a_pixel() -> None:
    """Without colours an image is drawn in five shades, one line for each row of pixels."""
    console = Console(file=io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), width=80)
    assert ["  ░░▒▒██", "██▒▒░░  ", "    ████"] == [line.plain for line in draw(IMAGE, console)]
    assert 8 == columns(console, 4)


def test_a_pipe_without_unicode_gets_ascii() -> None:
    """Where the encoding lacks the shades, ASCII stands in for them."""
    console = Console(file=io.TextIOWrapper(io.BytesIO(), encoding="ascii"), width=80)
    assert ["  ..::@@", "@@::..  ", "    @@@@"] == [line.plain for line in draw(IMAGE, console)]


def test_a_terminal_gets_half_blocks_two_pixels_a_character() -> None:
    """In colour each character is two pixels; an odd last row stands above black."""
    console = colour_console()
    lines = draw(IMAGE, console)
    assert ["▀▀▀▀", "▀▀▀▀"] == [line.plain for line in lines]
    assert "rgb(0,0,0) on rgb(255,255,255)" == str(lines[0].spans[0].style)
    assert "rgb(255,255,255) on rgb(0,0,0)" == str(lines[1].spans[3].style)
    assert 4 == columns(console, 4)


def test_values_outside_the_range_are_clipped() -> None:
    """A pixel below 0 or above 1 is the darkest or the brightest, never an error."""
    console = Console(file=io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), width=80)
    (line,) = draw(np.array([[-1, 2]], dtype=np.float32), console)
    assert "  ██" == line.plain
