"""Measures nybble on one adapter: ``python -m bench.run [--device vulkan] [--only TASK ...]``.

Prints every figure with its floor and its target, and writes ``bench/results/NAME.json``, from
which ``python -m bench.report`` makes ``bench/RESULTS.md``. Every task has a process of its own, so
that none finds the adapter as another left it.
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

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
    rows: list[Row] = []
    facts: dict[str, str] = {}
    for name in options.only:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            measured, facts = process.submit(_measured, name, options.device).result()
        rows += measured
    show(rows, facts)
    if options.save:
        print("wrote", save(options.save, rows, facts))


def _measured(task: str, name: str) -> tuple[list[Row], dict[str, str]]:
    """A task's rows on a device by name, and the facts that they depend on."""
    device = open_device(name)
    return TASKS[task](device), environment(device)


if __name__ == "__main__":
    main()
