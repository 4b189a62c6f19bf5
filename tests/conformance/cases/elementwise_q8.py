"""Conformance cases of the operators from int8 codes to int8 codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from nybble.testing import Case

__all__ = ["CASES"]

_RNG = np.random.default_rng(888)
_SHAPES = [
    (), (1,), (3,), (4,), (29,), (3, 5), (2, 8), (2, 3, 7), (1, 4, 5, 3), (2, 5, 3, 7),
    (1, 11, 1, 1), (2, 3, 1, 5, 2), (0, 3), (1, 0, 2, 2), (300,),
]  # fmt: skip


def _codes(shape: tuple[int, ...]) -> Any:
    return _RNG.integers(-128, 128, shape, dtype=np.int8)


def _label(*parts: Any) -> str:
    return "-".join("x".join(map(str, p)) if isinstance(p, tuple) else str(p) for p in parts)


def _add(shape: tuple[int, ...], label: str = "", **changes: Any) -> Case:
    arguments = {
        "a": _codes(shape), "b": _codes(shape), "scale_a": 0.031, "zero_point_a": 5,
        "scale_b": 0.017, "zero_point_b": -77, "scale_out": 0.043, "zero_point_out": 3,
        "alpha": 1,
    }  # fmt: skip
    return Case("et_vk.q8ta_add.default", arguments | changes, (), _label("add", shape, label))


def _relu(shape: tuple[int, ...], label: str = "", **changes: Any) -> Case:
    arguments = {
        "x": _codes(shape), "scale_in": 0.031, "zero_point_in": 5,
        "scale_out": 0.023, "zero_point_out": -11,
    }  # fmt: skip
    return Case("et_vk.q8ta_relu.default", arguments | changes, (), _label("relu", shape, label))


def _shuffle(shape: tuple[int, ...], factor: int, label: str = "", **changes: Any) -> Case:
    arguments = {
        "x": _codes(shape), "scale_in": 0.031, "zero_point_in": 5,
        "inverse_scale_out": float(np.float32(1 / 0.027)), "zero_point_out": -11,
        "factor": factor,
    }  # fmt: skip
    return Case(
        "et_vk.q8ta_pixel_shuffle.default",
        arguments | changes,
        (),
        _label("shuffle", shape, factor, label),
    )


def _pairs() -> tuple[Any, Any]:
    """Every pair of codes of which one is a multiple of five."""
    a, b = np.meshgrid(np.arange(-128, 128), np.arange(-128, 128, 5))
    return a.astype(np.int8), b.astype(np.int8)


_EVERY = np.arange(-128, 128).astype(np.int8).reshape(4, 64)
_A, _B = _pairs()
_BROADCAST = [
    ((1, 4, 5, 5), (1, 4, 1, 1)), ((1, 4, 1, 1), (2, 4, 5, 3)), ((2, 3, 7), (7,)), ((3, 5), ()),
    ((3, 1), (1, 5)), ((0, 3), (1, 3)), ((2, 1, 3, 1), (5, 1, 7)),
]  # fmt: skip
_ADD_CHANGES: dict[str, dict[str, Any]] = {
    "pairs": {},
    "ties": {"scale_a": 0.5, "scale_b": 0.25, "scale_out": 1.0, "alpha": 2},
    "contraction": {"scale_a": 0.1, "scale_b": 0.3, "scale_out": 0.05, "alpha": 1.7},
    "negative": {"alpha": -1.0, "zero_point_out": 127},
    "none": {"alpha": 0},
    "subnormal": {"alpha": 1e-39, "scale_b": 1e9, "scale_out": 2.0**-100},
    "extreme": {"zero_point_a": -128, "zero_point_b": 127, "zero_point_out": -128},
    "saturating": {"scale_a": 1e9, "scale_out": 1e-9},
    "vanishing": {"scale_a": 1e-9, "scale_b": 1e-9, "scale_out": 1e9},
    "infinite": {"alpha": 3e38, "scale_b": 1e9},
    "range": {"code_min": 3, "code_max": 70},
}
ADD = [
    *(_add(shape) for shape in _SHAPES),
    *(_add(a, _label(b), b=_codes(b)) for a, b in _BROADCAST),
    *(_add(_A.shape, label, a=_A, b=_B, **changes) for label, changes in _ADD_CHANGES.items()),
]
_RELU_CHANGES: dict[str, dict[str, Any]] = {
    "every": {},
    "ties": {"scale_in": 0.5, "scale_out": 1.0},
    "below-ties": {"scale_in": float(np.nextafter(np.float32(0.5), np.float32(0)))},
    "low": {"zero_point_in": -128, "zero_point_out": -128},
    "high": {"zero_point_in": 127, "zero_point_out": 127},
    "saturating": {"scale_in": 1e9, "scale_out": 1e-9},
    "vanishing": {"scale_in": 1e-9, "scale_out": 1e9},
    "range": {"code_min": -5, "code_max": 70},
}
RELU = [
    *(_relu(shape) for shape in _SHAPES),
    *(_relu(_EVERY.shape, label, x=_EVERY, **changes) for label, changes in _RELU_CHANGES.items()),
]
SHUFFLE = [
    _shuffle((1, 4, 3, 5), 2),
    _shuffle((4, 1, 1), 2),
    _shuffle((2, 12, 5, 3), 2, zero_point_in=-128),
    _shuffle((1, 45, 2, 3), 3, zero_point_out=127),
    _shuffle((3, 20, 7, 1), 2),
    _shuffle((20, 3, 5), 2, code_min=-20, code_max=30),
    _shuffle((2, 3, 8, 3, 3), 2),
    _shuffle((1, 5, 3, 3), 1),
    _shuffle((1, 16, 2, 2), 4, inverse_scale_out=1e9),
    _shuffle((0, 4, 3, 3), 2),
]
CASES = [*ADD, *RELU, *SHUFFLE]
