"""Prints checks: one paragraph each, remedies below the line that they belong to."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from nybble.doctor.checks import Check

__all__ = ["show"]

_STYLES = {"ok": "green", "note": "yellow", "missing": "bold red"}
_NAME_COLUMNS = 17


def show(checks: Sequence[Check], console: Console) -> None:
    """Print ``checks`` as aligned columns and a last line that sums them up."""
    for check in checks:
        name = check.name.lstrip()
        # A line about an adapter is indented as a whole, and its details stay in their column.
        indent = len(check.name) - len(name)
        row = Table.grid(padding=(0, 2))
        row.add_column(width=len("missing"))
        row.add_column(width=_NAME_COLUMNS - indent)
        row.add_column()
        row.add_row(Text(check.status, _STYLES[check.status]), Text(name), Text(check.detail))
        console.print(Padding(row, (0, 0, 0, indent), expand=False))
        if check.remedy:
            padding = (0, 0, 0, 9 + indent)
            console.print(Padding(Text(f"-> {check.remedy}", "cyan"), padding, expand=False))
    console.print()
    console.print(Text(_summary(checks)))


def _summary(checks: Sequence[Check]) -> str:
    missing = [check.name.strip() for check in checks if check.status == "missing"]
    if missing:
        return f"Missing: {', '.join(missing)}. Each has its remedy below it."
    return "Everything that nybble needs is there."
