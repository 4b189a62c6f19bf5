"""Makes ``bench/RESULTS.md`` from ``bench/results/*.json``: ``python -m bench.report``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.common import FOLDER, RESULTS

HEAD = """# Results

Made by `python -m bench.report` from `bench/results/*.json`, which
`python -m bench.run --save NAME` writes; nothing here is typed by hand.
Each table is one run on one machine. *least .. most* are the extremes over the run's repeats,
*floor* what the adapter could do at best, *target* what the project asked for.
Kernel times are GPU timestamps.
"""
NOTES = FOLDER / "NOTES.md"


def table(path: Path) -> list[str]:
    """The section of one run."""
    data = json.loads(path.read_text())
    facts = data["environment"]
    lines = [f"## {facts['device']}", ""]
    lines += [
        f"{data['date']}; " + ", ".join(f"{k} {v}" for k, v in facts.items() if k != "device")
    ]
    lines += ["", "| task | what | value | least .. most | floor | target | note |"]
    lines += ["|---|---|---|---|---|---|---|"]
    lines += [row(item) for item in data["rows"]]
    return [*lines, ""]


def row(item: dict[str, Any]) -> str:
    """One figure."""
    spread = ""
    sample = item["sample"]
    if sample:
        spread = f"{sample['least'] * 1e3:.4g} .. {sample['most'] * 1e3:.4g} ms"
    value = f"**{item['value']:.4g} {item['unit']}**"
    cells = (item["task"], item["what"], value, spread, item["floor"], item["target"], item["note"])
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def main() -> None:
    """Write the page."""
    lines = [HEAD]
    for path in sorted(RESULTS.glob("*.json")):
        lines += table(path)
    if NOTES.is_file():
        lines.append(NOTES.read_text())
    target = FOLDER / "RESULTS.md"
    target.write_text("\n".join(lines).rstrip() + "\n")
    print(f"wrote {target}")


if __name__ == "__main__":
    main()
