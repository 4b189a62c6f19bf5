"""Classifies the held-out digits on a device, and compares its codes with the reference."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import nybble
from nybble.demo.data import PROGRAM, Digits

__all__ = ["Result", "classify"]

_VERIFIED_IMAGES = 8


@dataclass(frozen=True)
class Result:
    """What the device made of the images.

    ``milliseconds`` is the median over the calls, one image each, with its transfers.
    ``identical`` is None where the device is the reference itself; ``comparison`` says of what.
    """

    device: nybble.DeviceInfo
    predictions: NDArray[np.int64]
    milliseconds: float
    identical: bool | None
    comparison: str


def classify(digits: Digits, device: str) -> Result:
    """Run the shipped program on every image, on ``device`` and on the host reference."""
    program = nybble.load(PROGRAM, device=device)
    method = program["forward"]
    shape = method.inputs[0].shape
    batches = list(_batches(digits.images, shape))
    method(batches[0])  # the first call also compiles kernels
    seconds = []
    logits = []
    for batch in batches:
        started = time.perf_counter()
        logits.append(np.asarray(method(batch)))
        seconds.append(time.perf_counter() - started)
    scores = np.concatenate(logits)
    identical, comparison = _compare(program, batches, scores)
    return Result(
        device=program.device,
        predictions=scores.argmax(axis=1),
        milliseconds=float(np.median(seconds)) * 1e3 / shape[0],
        identical=identical,
        comparison=comparison,
    )


def _batches(images: NDArray[np.float32], shape: tuple[int, ...]) -> Iterator[NDArray[np.float32]]:
    for start in range(0, len(images), shape[0]):
        yield images[start : start + shape[0]].reshape(shape)


def _compare(
    program: nybble.Program,
    batches: list[NDArray[np.float32]],
    scores: NDArray[np.float32],
) -> tuple[bool | None, str]:
    """Compare the logits of all images, and every call on the first few of them."""
    if program.device.name == "host":
        return None, "no adapter: this is the reference"
    host = nybble.load(PROGRAM, device="host")
    expected = np.concatenate([np.asarray(host(batch)) for batch in batches])
    different = np.flatnonzero((expected != scores).any(axis=1))
    if different.size:
        return False, f"the logits of {different.size} images differ, first image {different[0]}"
    for batch in batches[:_VERIFIED_IMAGES]:
        report = program.verify(batch)
        if not report:
            return False, report.summary
    return True, f"every call of {_VERIFIED_IMAGES} images, logits of all {len(scores)}"
