"""A loss curve: in the terminal, and as a picture where matplotlib is installed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

from nybble.arguments import refuse_missing_folder
from nybble.errors import NybbleError

__all__ = ["check_plot", "draw_curve", "save_plot"]

_LABEL = 9
_BLOCKS = " ▁▂▃▄▅▆▇█│└─"
_ASCII = " ..::::##|+-"
"""Nothing, one to eight eighths of a block, and the axes."""


def draw_curve(
    values: Sequence[float], columns: int = 79, height: int = 8, encoding: str = "utf-8"
) -> str:
    """Lines of text that show the finite of ``values`` as bars, from the lowest to the highest.

    Each line has at most ``columns`` characters of ``encoding``. Where there are more values than
    columns, a bar is the mean of neighbours; the axis names the range of the bars.
    """
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return ""
    characters = _BLOCKS if _has_blocks(encoding) else _ASCII
    eighths, (vertical, corner, horizontal) = characters[:9], list(characters[9:])
    steps = f" {len(values)} step{'s' if len(values) > 1 else ''}"
    bars = _means(finite, max(8, columns - len(steps) - _LABEL - 2))
    low, high = min(bars), max(bars)
    # The lowest bar is an eighth high, so that it is seen.
    filled = [1 + (value - low) / ((high - low) or 1.0) * (8 * height - 1) for value in bars]
    lines = []
    for row in range(height - 1, -1, -1):
        drawn = "".join(eighths[min(8, max(0, round(part) - 8 * row))] for part in filled)
        label = high if row == height - 1 and high > low else low if row == 0 else None
        lines.append(f"{_label(label)} {vertical}{drawn.rstrip()}")
    lines.append(f"{_label(None)} {corner}{horizontal * len(bars)}{steps}")
    return "\n".join(lines)


def _label(value: float | None) -> str:
    if value is None:
        return " " * _LABEL
    plain = value == 0 or 1e-3 <= abs(value) < 1e4
    return f"{value:.4f}".rjust(_LABEL) if plain else f"{value:.2e}".rjust(_LABEL)


def _has_blocks(encoding: str) -> bool:
    try:
        _BLOCKS.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _means(values: Sequence[float], width: int) -> list[float]:
    count = min(width, len(values))
    edges = [round(i * len(values) / count) for i in range(count + 1)]
    return [sum(values[a:b]) / (b - a) for a, b in pairwise(edges)]


def check_plot(path: Path) -> None:
    """Raise NybbleError unless a picture can be made at ``path``, before any work is done."""
    if find_spec("matplotlib") is None:
        raise NybbleError(
            "--plot draws with matplotlib, which is not installed: pip install matplotlib, or "
            "leave --plot out; the curve is printed in the terminal anyway."
        )
    refuse_missing_folder(path, "picture")


def save_plot(path: Path, values: Sequence[float], title: str) -> None:
    """Write the picture of a loss curve."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(range(1, len(values) + 1), values, linewidth=1)
    axes.set(title=title, xlabel="step", ylabel="loss")
    axes.grid(alpha=0.3)
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise NybbleError(f"The picture {path} cannot be written: {error}.") from error
