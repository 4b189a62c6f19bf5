"""Conformance cases of losses: ignored labels, labels that are no class, extreme logits."""

from __future__ import annotations

from typing import Any

import numpy as np

from nybble.testing import Case

__all__ = ["CASES"]

_RNG = np.random.default_rng(32)


def _logits(rows: int, classes: int, scale: float = 1) -> Any:
    return (scale * _RNG.standard_normal((rows, classes))).astype(np.float32)


def _labels(rows: int, classes: int) -> Any:
    return _RNG.integers(-1, classes, rows).astype(np.int32)


def _case(logits: Any, labels: Any, weight: float, about: str = "") -> Case:
    arguments = {"logits": logits, "labels": labels, "weight": np.asarray(weight, np.float32)}
    return Case("nybble.cross_entropy.default", arguments, id=about)


_FAR = np.array([[1e4, -1e4, 0], [-1e4, -1e4, -1e4], [88, 89, 90]], np.float32)
_HOSTILE = np.array(
    [[-np.inf, 1, 2], [np.nan, 0, 1], [np.inf, 0, 1], [np.nan] * 3, [-np.inf] * 3, [np.inf] * 3],
    np.float32,
)
_THREE = np.array([1, 0, 2], np.int32)

CASES = [
    _case(_logits(rows, classes), _labels(rows, classes), 1 / max(1, rows))
    for rows, classes in ((1, 1), (3, 5), (7, 11), (2, 67), (5, 1283), (0, 3))
]
CASES += [
    _case(_logits(3, 5, 30), _labels(3, 5), 0.5, "wide"),
    _case(_FAR, _THREE, 1.0, "far"),
    _case(_logits(3, 3), np.array([-100, 3, 2**31 - 1], np.int32), 1.0, "no-class"),
    _case(np.full((1, 3), -1e4, np.float32), np.zeros(1, np.int32), 1.0, "far-alike"),
    *(
        _case(_HOSTILE, labels, weight, f"hostile-{weight}")
        for labels in (np.array([0, 1, 2, -1, 5, -7], np.int32), np.full(6, -1, np.int32))
        for weight in (0.5, np.nan, np.inf, 0.0)
    ),
]
CASES += [
    Case(
        "nybble.cross_entropy.default",
        {"logits": _logits(3, 5), "labels": _labels(3, 5), "weight": None, "share": 0.25},
        id="share",
    )
]
CASES += [
    Case("nybble.valid_weight.default", {"labels": labels})
    for labels in (
        _labels(1031, 5), _labels(3, 5), np.full(7, -1, np.int32), np.zeros((2, 3), np.int32),
        np.zeros(0, np.int32), np.array([2], np.int32),
    )
]  # fmt: skip
