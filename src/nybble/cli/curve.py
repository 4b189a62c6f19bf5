"""A loss curve: in the terminal, and as a picture where matplotlib is installed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

from nybble.errors import NybbleError

__all__ = ["check_plot", "draw_curve", "save_plot"]

_EIGHTHS = " ▁▂▃▄▅▆▇█"


def draw_curve(values: Sequence[float], width: int = 64, height: int = 8) -> str:
    """Lines of text that show ``values`` as bars, means of neighbours where there are many."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return ""
    columns = _means(finite, width)
    top = max(columns) or 1.0
    lines = []
    for row in range(height, 0, -1):
        filled = [value / top * height - (row - 1) for value in columns]
        bars = "".join(_EIGHTHS[round(8 * min(1.0, max(0.0, part)))] for part in filled)
        label = f"{top:9.4f}" if row == height else " " * 9
        lines.append(f"{label} │{bars.rstrip()}")
    lines.append(f"{0:9d} └{'─' * len(columns)} {len(values)} steps")
    return "\n".join(lines)


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
    if not path.parent.is_dir():
        raise NybbleError(
            f"The folder {path.parent} of the picture {path} does not exist: make it."
        )


def save_plot(path: Path, values: Sequence[float], title: str) -> None:
    """Write the picture of a loss curve."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(range(1, len(values) + 1), values, linewidth=1)
    axes.set(title=title, xlabel="step", ylabel="loss", ylim=(0, None))
    axes.grid(alpha=0.3)
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise NybbleError(f"The picture {path} cannot be written: {error}.") from error
