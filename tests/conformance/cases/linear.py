"""Conformance cases of the float matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from nybble.testing import Case

__all__ = ["CASES"]

_RNG = np.random.default_rng(25)


def _floats(*shape: int) -> Any:
    return _RNG.normal(0, 1, shape).astype(np.float32)


def _linear(shape: tuple[int, ...], n: int, *, bias: bool = True) -> Case:
    arguments = {"x": _floats(*shape), "weight": _floats(n, shape[-1])}
    if bias:
        arguments["bias"] = _floats(n)
    return Case("aten.linear.default", arguments, ("weight", "bias"), "bias" if bias else "plain")


def _addmm(addend: tuple[int, ...], m: int, k: int, n: int, **factors: float) -> Case:
    arguments = {"addend": _floats(*addend), "x": _floats(m, k), "weight": _floats(k, n)}
    return Case("aten.addmm.default", {**arguments, **factors}, id="-".join(factors))


def _mm(m: int, k: int, n: int) -> Case:
    return Case("aten.mm.default", {"x": _floats(m, k), "weight": _floats(k, n)})


def _bmm(b: int, m: int, k: int, n: int) -> Case:
    return Case("aten.bmm.default", {"x": _floats(b, m, k), "weight": _floats(b, k, n)})


def _unread_addend() -> Case:
    arguments = {"addend": np.full((7,), np.nan, np.float32), "x": _floats(5, 3)}
    return Case(
        "aten.addmm.default", {**arguments, "weight": _floats(3, 7), "beta": 0.0}, id="beta0"
    )


CASES = [
    _linear((1, 37), 11),
    _linear((1, 36), 11),
    _linear((3, 260), 7),
    _linear((4, 256), 5, bias=False),
    _linear((37,), 11),
    _linear((2, 3, 5, 8), 29, bias=False),
    _linear((2, 5, 11), 3),
    _linear((67, 37), 71),
    _linear((65, 64), 64),
    _linear((1, 1), 1),
    _linear((0, 5), 3),
    _linear((3, 0), 5),
    _addmm((11,), 5, 7, 11),
    _addmm((5, 11), 5, 7, 11, beta=0.5, alpha=-2.0),
    _addmm((5, 1), 5, 7, 11, beta=2.0),
    _addmm((1, 11), 5, 7, 11),
    _addmm((), 5, 7, 11, beta=3.0),
    _addmm((71,), 67, 37, 71, alpha=0.25),
    _unread_addend(),
    _mm(5, 7, 11),
    _mm(1, 1, 1),
    _mm(67, 37, 71),
    _mm(3, 0, 5),
    _bmm(3, 5, 7, 11),
    _bmm(2, 67, 19, 65),
    _bmm(0, 5, 7, 11),
]
