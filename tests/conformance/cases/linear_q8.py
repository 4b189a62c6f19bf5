"""Conformance cases of the int8 linear layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from nybble.testing import Case

__all__ = ["CASES"]

_RNG = np.random.default_rng(88)
_CODES = "et_vk.q8ta_linear.default"
_ROW = "et_vk.q8ta_linear_gemv.default"
_FLOATS = "et_vk.linear_q8ta_q8csw.default"
_CONSTANTS = ("weight", "weight_sums", "weight_scales", "bias")


def _codes(*shape: int) -> Any:
    return _RNG.integers(-128, 128, shape, dtype=np.int8)


def _case(
    operator: str,
    shape: tuple[int, ...],
    features: int,
    *,
    extra_columns: int | None = None,
    label: str = "",
    **changes: Any,
) -> Case:
    depth, padding = shape[-1], -features % 4
    extra = -depth % 4 if extra_columns is None else extra_columns
    spread = 0.6 * max(1, depth) ** 0.5
    arguments: dict[str, Any] = {
        "x": _codes(*shape),
        "scale_in": 0.017,
        "zero_point_in": int(_RNG.integers(-128, 128)),
        "weight": _codes(features, depth + extra),
        "weight_sums": np.zeros(features + padding, np.int32),
        "weight_scales": np.pad(
            _RNG.uniform(0.002, 0.01, features).astype(np.float32), (0, padding), constant_values=7
        ),
        "bias": np.pad(_RNG.normal(0, spread, features).astype(np.float32), (0, padding)),
    }
    if operator != _FLOATS:
        arguments |= {
            "scale_out": float(np.float32(0.02 * spread)),
            "zero_point_out": int(_RNG.integers(-128, 128)),
            "activation": "none",
        }
    kind = {_CODES: "codes", _ROW: "row", _FLOATS: "floats"}[operator]
    text = "x".join(map(str, (*shape, features)))
    identity = f"{kind}-{text}{'-' + label if label else ''}"
    return Case(operator, arguments | changes, _CONSTANTS, identity)


def _special(operator: str, **changes: Any) -> list[Case]:
    values = np.array([np.nan, np.inf, -np.inf, 1e38], np.float32)
    return [
        _case(operator, (3, 8), 4, bias=values, label="special-bias", **changes),
        _case(operator, (3, 8), 4, weight_scales=values, label="special-scales", **changes),
    ]


CODES = [
    _case(_CODES, (1, 1), 1),
    _case(_CODES, (4,), 4, label="vector"),
    _case(_CODES, (3, 5), 7),
    _case(_CODES, (7, 16), 12, activation="relu"),
    _case(_CODES, (11, 29), 37, zero_point_in=-128, bias=None),
    _case(_CODES, (2, 5, 32), 16, zero_point_in=127),
    _case(_CODES, (2, 3, 11), 5, activation="relu", code_min=-50, code_max=60),
    _case(_CODES, (64, 64), 68),
    _case(_CODES, (33, 128), 36, zero_point_out=-128),
    _case(_CODES, (5, 260), 9, zero_point_out=127),
    _case(_CODES, (2, 1030), 8, zero_point_in=-128),
    _case(_CODES, (5, 1041), 8, zero_point_in=-128),
    _case(_CODES, (5, 2064), 8, zero_point_in=127, activation="relu"),
    _case(_CODES, (53, 1031), 6, zero_point_in=-128),
    _case(_CODES, (201, 400), 12),
    _case(_CODES, (2, 3, 5, 16), 8, label="rank4"),
    _case(_CODES, (1, 2, 3, 7), 5, activation="relu", label="rank4"),
    _case(_CODES, (1, 1, 1, 5), 3, bias=None, label="rank4"),
    _case(_CODES, (2, 1, 3, 2, 9), 6, label="rank5"),
    _case(_CODES, (5, 8), 8, extra_columns=3),
    _case(_CODES, (0, 8), 8, label="no-row"),
    _case(_CODES, (3, 8), 4, scale_in=1e9, scale_out=1e-9, label="saturating"),
    _case(_CODES, (3, 8), 4, scale_in=1e-9, scale_out=1e9, label="vanishing"),
    *_special(_CODES),
    *_special(_CODES, activation="relu"),
]
ROW = [
    _case(_ROW, (1, 1), 1),
    _case(_ROW, (1, 16), 16),
    _case(_ROW, (1, 37), 29, activation="relu"),
    _case(_ROW, (1, 256), 64, zero_point_in=127),
    _case(_ROW, (1, 1028), 36, zero_point_in=-128, bias=None),
    _case(_ROW, (1, 515), 5),
    _case(_ROW, (2, 1, 48), 20),
    _case(_ROW, (1, 1, 1, 12), 8, label="rank4"),
    _case(_ROW, (1, 4100), 3, activation="relu"),
    _case(_ROW, (53, 1, 16), 5),
    _case(_ROW, (59, 1, 7), 36),
]
FLOATS = [
    _case(_FLOATS, (1, 1), 1),
    _case(_FLOATS, (3, 5), 7),
    _case(_FLOATS, (1, 64), 10),
    _case(_FLOATS, (1, 515), 37, zero_point_in=-128),
    _case(_FLOATS, (7, 128), 12, bias=None, zero_point_in=127),
    _case(_FLOATS, (2, 5, 32), 16),
    _case(_FLOATS, (2, 1, 3, 7), 5, label="rank4"),
    _case(_FLOATS, (33, 64), 36),
    _case(_FLOATS, (5, 3), 8, scale_in=1e9),
    _case(_FLOATS, (53, 32), 9),
    _case(_FLOATS, (59, 11), 36),
    _case(_FLOATS, (7, 1040), 5, zero_point_in=-128),
    _case(_FLOATS, (7, 1029), 5, zero_point_in=127),
    _case(_FLOATS, (0, 8), 4, label="no-row"),
    *_special(_FLOATS),
]
# As many results as the kernels for large products ask for, and little to sum.
LARGE = [
    _case(operator, (rows, depth), features, label="large")
    for operator in (_CODES, _FLOATS)
    for depth in (3, 16)
    for rows, features in ((1033, 509), (1033, 2037))
]
CASES = [*CODES, *ROW, *FLOATS, *LARGE]
