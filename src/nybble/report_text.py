"""How reports name operators and types, and wrap them: readable in a table of 80 columns."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from nybble.graph import Call

__all__ = [
    "Words", "call_shapes", "new_table", "short_name", "short_shapes", "table_text",
    "without_padding",
]  # fmt: skip

_NAME = re.compile(r"\b(?:aten|quantized_decomposed|dim_order_ops)\.(\w+)|\b(et_vk\.\w+)")
_PADDING = re.compile(r" +(?=\n|\Z)")
_JOINT = re.compile(r"[_,.]")
_TEXT_COLUMNS = 200


@dataclass(frozen=True)
class Words:
    """A cell of names and types: a word wider than its column is broken at a joint in it."""

    text: str
    style: str = ""

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """The longest word, and everything in one line."""
        del console, options
        longest = max(map(len, self.text.split()), default=0)
        return Measurement(longest, len(self.text))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines for a column of ``options.max_width``."""
        del console
        yield Text("\n".join(_wrapped(self.text, options.max_width)), self.style, no_wrap=True)


def new_table(title: str) -> Table:
    """A table without vertical rules or padding, which leave 80 characters little for names."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=0)
    table.show_edge = False
    return table


def call_shapes(call: Call) -> str:
    """The types that a call reads, constants left out, and those that it gives."""
    into = ", ".join(str(value) for value in call.inputs.values() if value.constant is None)
    return f"{into} -> {', '.join(map(str, call.outputs))}"


def short_name(operator: str) -> str:
    """``operator`` without ``.default`` and the namespaces of PyTorch: ``quantize_per_tensor``."""
    short = _NAME.sub(lambda match: match[1] or match[2], operator)
    return short.replace(".default", "")


def short_shapes(shapes: str) -> str:
    """``shapes`` without the spaces inside brackets, so that a type is never broken in two."""
    return re.sub(r"\[[^\]]*\]", lambda match: match[0].replace(" ", ""), shapes)


def table_text(table: Table) -> str:
    """``table`` as plain text, for ``print``."""
    console = Console(width=_TEXT_COLUMNS, color_system=None, force_terminal=False)
    with console.capture() as capture:
        console.print(table)
    return without_padding(capture.get()).rstrip("\n")


def without_padding(text: str) -> str:
    """``text`` without the spaces at the ends of its lines."""
    return _PADDING.sub("", text)


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of at most ``width`` characters, broken at spaces, else after a joint of a word."""
    lines = [""]
    for word in text.split():
        joined = f"{lines[-1]} {word}".lstrip()
        if len(joined) <= width:
            lines[-1] = joined
            continue
        pieces = _pieces(word, max(1, width))
        lines = [*filter(None, lines), *pieces]
    return lines


def _pieces(word: str, width: int) -> list[str]:
    pieces = []
    while len(word) > width:
        cut = max((joint.end() for joint in _JOINT.finditer(word[:width])), default=width)
        pieces.append(word[:cut])
        word = word[cut:]
    return [*pieces, word]
