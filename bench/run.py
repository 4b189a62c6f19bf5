"""Measures nybble on one adapter: ``python -m bench.run [--device vulkan] [--only TASK ...]``.

Prints every figure with its floor and its target, and writes ``bench/results/NAME.json``, from
which ``python -m bench.report`` makes ``bench/RESULTS.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import nybble.ops  # noqa: F401  (declares the operators)
from bench import beside_torch, dispatch, linear_q4, mobilenet, pointwise, quantize, training
from bench.common import Row, environment, save, show
from nybble.devices import Device, open_device

TASKS: dict[str, Callable[[Device], list[Row]]] = {
    "quantize": quantize.measure,
    "pointwise": pointwise.measure,
    "mobilenet": mobilenet.measure,
    "linear_q4": linear_q4.measure,
    "training": training.measure,
    "dispatch": dispatch.measure,
    "torch": beside_torch.measure,
}


def main() -> None:
    """Run the chosen tasks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="webgpu", help="webgpu, vulkan, dawn, webgpu:1, ...")
    parser.add_argument("--only", nargs="*", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--save", metavar="NAME", help="write bench/results/NAME.json")
    options = parser.parse_args()
    device = open_device(options.device)
    rows: list[Row] = []
    for name in options.only:
        rows += TASKS[name](device)
    facts = environment(device)
    show(rows, facts)
    if options.save:
        print("wrote", save(options.save, rows, facts))


if __name__ == "__main__":
    main()
