"""Makes ``bench/RESULTS.md`` from ``bench/results/*.json``: ``python -m bench.report``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from bench.common import FOLDER, RESULTS

HEAD = """# Results

Made by `python -m bench.report`: the tables from `bench/results/*.json`, which
`python -m bench.run --save NAME` writes, and after them the words of `bench/NOTES.md`.
Each table is one run on one machine through one API. *least .. most* are the extremes over the
run's repeats, *floor* what the adapter could do at best, *target* what the project asked for.
Kernel times are GPU timestamps around a row of dispatches that each wait for the one before (they
write the same buffer), within one compute pass, divided by their number: what a layer costs in a
program whose layers follow each other, and how `gemv_q4.py`, the plain kernel beside
`linear_q4gsw`, was timed. *least .. most* are then extremes over such rows. Weights of few rows
take turns, so that no cache holds them: codes and scales, and a second time codes alone.
"""
NOTES = FOLDER / "NOTES.md"
_DEVICE = re.compile(r"(?P<api>\w+):\d+: (?P<adapter>.*) \((?P<backend>.*), .*\)")
_APIS = {
    "webgpu": "WebGPU (wgpu-native over {backend})",
    "dawn": "WebGPU (Dawn over {backend})",
    "vulkan": "{backend}",
}


def table(path: Path) -> list[str]:
    """The section of one run."""
    data = json.loads(path.read_text())
    facts = data["environment"]
    lines = [f"## {title(facts['device'])}", ""]
    lines += [
        f"{data['date']}; " + ", ".join(f"{k} {v}" for k, v in facts.items() if k != "device")
    ]
    lines += ["", "| task | what | value | least .. most | floor | target | note |"]
    lines += ["|---|---|---|---|---|---|---|"]
    lines += [row(item) for item in data["rows"]]
    return [*lines, ""]


def title(device: str) -> str:
    """The adapter and the API through which it was used, of a device as it describes itself."""
    found = _DEVICE.fullmatch(device)
    if found is None:
        return device
    api = _APIS[found["api"]].format(backend=found["backend"])
    return f"{found['adapter']}: {api}"


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
