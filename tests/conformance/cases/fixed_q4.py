"""Conformance cases of the parts of a product in fixed point on the matrix units."""

from __future__ import annotations

from typing import Any

import numpy as np

from nybble.testing import Case

__all__ = ["CASES"]

_RNG = np.random.default_rng(5)
_INFINITY = np.float32(np.inf)


def _floats(*shape: int) -> Any:
    return _RNG.normal(0, 1, shape).astype(np.float32)


def _bytes(*shape: int) -> Any:
    return _RNG.integers(0, 256, shape, dtype=np.uint8)


def _scales(*shape: int) -> Any:
    return _RNG.uniform(0.01, 0.2, shape).astype(np.float32)


def _fixed_inputs() -> Any:
    """Blocks of every sort: usual, zero, ties, tiny, huge, uneven, infinite, NaN."""
    x = _floats(7, 96)
    x[0, :32] = 0
    x[1, :32] = np.arange(32) + 0.5
    x[1, 0] = 16383.75
    x[2, :32] *= np.float32(1e-38)
    x[2, 32:64] *= np.float32(5e37)
    x[3, 5] = 1e7
    x[4, 3], x[4, 40], x[5, 95] = np.nan, _INFINITY, -_INFINITY
    x[6, 0], x[6, 33] = np.float32(1.9999999), np.float32(-2e-45)
    return x


def _fixed_products() -> list[Case]:
    cases = []
    for rows, n, blocks, group, splits, high_first, extra in (
        ((1,), 4, 2, 32, 1, False, 0),
        ((2, 3), 132, 4, 32, 2, False, 4),
        ((70,), 200, 6, 64, 1, False, 0),
        ((5,), 68, 8, 96, 2, False, 1),
        ((130,), 136, 6, 32, 3, False, 2),
        ((129,), 128, 8, 1000, 2, True, 0),
        ((64,), 260, 16, 32, 8, True, 0),
        ((0,), 4, 2, 32, 1, False, 0),
    ):
        x = _RNG.integers(-128, 128, (*rows, blocks, 2, 32)).astype(np.int8)
        x[..., 0, :] //= 2
        x_scales = np.exp2(_RNG.integers(-20, -10, (blocks, *rows))).astype(np.float32)
        if rows == (70,):
            x_scales[1, 3] = np.nan
        arguments = {
            "x": x,
            "x_scales": x_scales,
            "weight": _bytes(n, 16 * blocks),
            "scales": _scales(-(-32 * blocks // group), n + extra),
            "group_size": group,
            "splits": splits,
            "high_first": high_first,
        }
        cases.append(
            Case(
                "nybble.linear_fixed_q4.default", arguments, ("weight", "scales"),
                f"g{group}-splits{splits}-high{high_first}",
            )
        )  # fmt: skip
    return cases


def _fixed_sums() -> list[Case]:
    parts = _floats(3, 5, 12)
    holed = parts.copy()
    holed[1, 2, 5], holed[0, 4, 11] = np.nan, np.nan
    x = _floats(5, 64)
    x[2, 7], x[4, 60] = _INFINITY, np.nan
    cases = [
        Case("nybble.sum_parts.default", {"parts": parts, "bias": None}, (), "plain"),
        Case("nybble.sum_parts.default", {"parts": holed, "bias": _floats(14)}, (), "bias"),
    ]
    for high_first in (False, True):
        arguments = {
            "parts": holed,
            "x": x,
            "weight": _bytes(12, 32),
            "scales": _scales(12) if high_first else _scales(2, 13),
            "group_size": 64 if high_first else 32,
            "high_first": high_first,
            "bias": None if high_first else _floats(12),
        }
        cases.append(Case("nybble.sum_linear_q4.default", arguments, ("weight", "scales"), "holed"))
    return cases


def _fixed_codes(*rows: int, k: int, scale: float, ties: bool = False) -> Case:
    scales = _RNG.uniform(0.5 * scale, 2 * scale, rows).astype(np.float32)
    steps = _RNG.normal(0, 60, (*rows, k))
    steps = np.rint(steps) + 0.5 if ties else steps
    zero_points = _RNG.choice(np.array([-128, -7, 0, 5, 127], np.int8), rows)
    arguments = {
        "x": (steps * scales[..., None]).astype(np.float32),
        "input_scales": scales,
        "input_zero_points": zero_points,
    }
    return Case("nybble.fixed_codes.default", arguments, (), f"s{scale}-ties{ties}")


CASES = [
    *(Case("nybble.fixed_point.default", {"x": x}) for x in (_fixed_inputs(), _floats(2, 3, 64))),
    _fixed_codes(3, k=96, scale=0.02),
    _fixed_codes(2, 4, k=64, scale=0.02, ties=True),
    _fixed_codes(5, k=64, scale=1e9),
    *_fixed_products(),
    *_fixed_sums(),
]
