"""Writes the tables of supported operators, from the operators' own declarations.

python tools/support_table.py           writes docs/operators.md and the README's table
python tools/support_table.py --check   exits with 1 when one of them is not current
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import nybble.ops  # noqa: F401  declares the operators
from nybble.contract import EXPANSIONS, REGISTRY, Expansion, Operator

__all__ = ["main", "operators", "pages"]

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- operators: begin -->", "<!-- operators: end -->"
INTERNAL = "nybble."
HEAD = """# Operators

Written by `tools/support_table.py` from the declarations in `src/nybble/ops`. *Equal* means that
every device gives the reference's result bit for bit; *close* means within the element type's
tolerance. The names of variants that a program calls outside its delegates follow in parentheses.
"""


def operators() -> list[Operator]:
    """Return the operators that a program can hold, each once, by family and name."""
    public = {operator.name: operator for operator in REGISTRY.values()}
    return sorted(
        (operator for name, operator in public.items() if not name.startswith(INTERNAL)),
        key=lambda operator: (operator.family, operator.name),
    )


def pages() -> dict[Path, str]:
    """Return the text that each document should have."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = f"{BEGIN}\n{_families()}\n{END}"
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    return {
        ROOT / "README.md": pattern.sub(lambda _: table, readme),
        ROOT / "docs" / "operators.md": HEAD + "".join(_details()),
    }


def main(arguments: list[str] | None = None) -> int:
    """Write the documents, or compare them; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args(arguments).check
    stale = [
        path
        for path, text in pages().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path in stale:
        name = path.relative_to(ROOT)
        if check:
            print(f"{name} is not current: run python tools/support_table.py")
        else:
            path.write_text(pages()[path], encoding="utf-8")
            print(f"wrote {name}")
    return 1 if check and stale else 0


def _families() -> str:
    rows = ["| family | equal, bit for bit | close, within a tolerance |", "|---|---|---|"]
    for family, members in groupby(operators(), key=lambda operator: operator.family):
        listed = list(members)
        equal = ", ".join(f"`{_short(item.name)}`" for item in listed if item.exact)
        close = ", ".join(f"`{_short(item.name)}`" for item in listed if not item.exact)
        rows.append(f"| {family} | {equal} | {close} |")
    names = sorted({item.name for item in EXPANSIONS.values()})
    others = ", ".join(f"`{_short(name)}`" for name in names)
    rows.append(f"| written as others | {others} | |")
    return "\n".join(rows)


def _details() -> Iterator[str]:
    for family, members in groupby(operators(), key=lambda operator: operator.family):
        yield f"\n## {family}\n\n| operator | result | | what it is |\n|---|---|---|---|\n"
        for operator in members:
            variants = "".join(f" (`{name}`)" for name in operator.out_variants)
            results = ", ".join(str(output.type).replace(" ...", "") for output in operator.outputs)
            equal = "equal" if operator.exact else "close"
            yield f"| `{operator.name}`{variants} | {results} | {equal} | {_sentence(operator)} |\n"
    yield "\n## written as others\n\n| operator | what it is |\n|---|---|\n"
    for item in sorted(set(EXPANSIONS.values()), key=lambda item: item.name):
        variants = "".join(f" (`{name}`)" for name in item.out_variants)
        yield f"| `{item.name}`{variants} | {_sentence(item)} |\n"


def _short(name: str) -> str:
    return name.removeprefix("aten.").removesuffix(".default")


def _sentence(operator: Operator | Expansion) -> str:
    """Return the first sentence of an operator's documentation, on one line."""
    paragraph = " ".join(operator.documentation.split("\n\n")[0].split())
    return paragraph.replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
