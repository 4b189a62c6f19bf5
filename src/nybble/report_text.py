"""How reports name operators and types: short enough for a table of 80 columns."""

from __future__ import annotations

import re

from rich.console import Console
from rich.table import Table

from nybble.graph import Call

__all__ = ["call_shapes", "short_name", "short_shapes", "table_text"]

_NAME = re.compile(r"\b(?:aten|quantized_decomposed|dim_order_ops)\.(\w+)|\b(et_vk\.\w+)")
_TEXT_COLUMNS = 200


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
    return capture.get().rstrip("\n")
