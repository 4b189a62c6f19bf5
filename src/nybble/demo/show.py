"""What ``nybble demo`` prints: some of the images beside their predictions, and the numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from rich.text import Text

from nybble.demo.classify import Result, classify
from nybble.demo.data import Digits, load_digits
from nybble.demo.draw import columns, draw

__all__ = ["show"]

_COLUMNS = 78
_GAP = 2
_ROWS = 2
_WHITE = 16.0  # scikit-learn's digits count dark pixels in 4 x 4 squares: 0 to 16


def show(console: Console, device: str = "auto") -> Result:
    """Classify the held-out digits on ``device``, print what came of it, and return it.

    Raises NybbleError when the device does not exist or the package's data is missing.
    """
    digits = load_digits()
    count = len(digits.labels)
    console.print(Text(f"nybble demo: {count} handwritten digits, an int8 network", "bold"))
    console.print(f"Images it never saw in training, {digits.images[0].size} pixels each.\n")
    if console.is_terminal:
        with console.status(f"classifying {count} images one by one, and on the reference"):
            result = classify(digits, device)
    else:
        result = classify(digits, device)
    _show_images(digits, result, console)
    _show_numbers(digits, result, console)
    return result


def _show_images(digits: Digits, result: Result, console: Console) -> None:
    width = columns(console, digits.images.shape[2])
    in_a_row = (_COLUMNS + _GAP) // (width + _GAP)
    chosen = _choose(digits, result, in_a_row * _ROWS)
    for start in range(0, len(chosen), in_a_row):
        row = chosen[start : start + in_a_row]
        grid = Table.grid(padding=(0, _GAP, 0, 0))
        drawn = [draw(digits.images[image] / _WHITE, console) for image in row]
        for lines in zip(*drawn, strict=True):
            grid.add_row(*lines)
        grid.add_row(*(_caption(digits, result, image) for image in row))
        console.print(grid)
        console.print()


def _choose(digits: Digits, result: Result, count: int) -> list[int]:
    """Choose the first images, and in place of the last ones up to two that were misread."""
    misread: NDArray[np.int64] = np.flatnonzero(result.predictions != digits.labels)
    first = list(range(min(count, len(digits.labels))))
    late = [int(image) for image in misread if image >= len(first)][:2]
    return first[: len(first) - len(late)] + late


def _caption(digits: Digits, result: Result, image: int) -> Text:
    label, prediction = int(digits.labels[image]), int(result.predictions[image])
    right = label == prediction
    return Text(f"{label} -> {prediction}" + ("" if right else " X"), "green" if right else "red")


def _show_numbers(digits: Digits, result: Result, console: Console) -> None:
    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column()
    identical, style = {
        True: ("yes", "bold green"),
        False: ("NO", "bold red"),
        None: ("not compared", "yellow"),
    }[result.identical]
    grid.add_row("accuracy", _accuracy(result.predictions, digits))
    grid.add_row("quantized eager model", _accuracy(digits.eager_predictions, digits))
    grid.add_row("adapter", Text(_describe(result)))
    grid.add_row("time per image", f"{result.milliseconds:.2f} ms, one by one, with transfers")
    grid.add_row("codes identical to the reference", Text(identical, style))
    grid.add_row("", Text(result.comparison))
    console.print("Below each image: what it shows -> what the network says.\n")
    console.print(grid, width=_COLUMNS)


def _describe(result: Result) -> str:
    device = result.device
    details = ", ".join(filter(None, (device.kind, device.backend, device.driver)))
    return f"{device.name}: {device.adapter} ({details})"


def _accuracy(predictions: NDArray[np.int64], digits: Digits) -> str:
    right = int((predictions == digits.labels).sum())
    return f"{right / len(digits.labels):.2%} ({right} of {len(digits.labels)})"
