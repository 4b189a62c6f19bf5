"""Conformance cases of quantize, dequantize and layout conversion."""

from __future__ import annotations

from typing import Any

import numpy as np

from nybble.testing import Case

__all__ = ["CASES"]

_RNG = np.random.default_rng(1)
_SHAPES: list[tuple[int, ...]] = [
    (), (1,), (5,), (11, 3), (0, 3), (2, 3, 7), (1, 3, 5, 7), (2, 7, 3, 5), (3, 8, 1, 1),
    (1, 1, 29, 37), (2, 5, 0, 3), (2, 3, 2, 5, 3),
]  # fmt: skip


def _case(kind: str, x: Any, label: str = "", **attributes: Any) -> Case:
    defaults = {"scale": 0.1, "zero_point": 3, "quant_min": -128, "quant_max": 127}
    name = f"quantized_decomposed.{kind}_per_tensor.default"
    return Case(name, {"x": x, **defaults, **attributes}, id=label)


def _ties(scale: float) -> Any:
    """Values on rounding ties of ``scale``, and one ulp to each side of them."""
    ties = ((np.arange(-140, 140) + 0.5) * scale).astype(np.float32)
    below = np.nextafter(ties, np.float32(-np.inf))
    above = np.nextafter(ties, np.float32(np.inf))
    return np.concatenate([ties, below, above])


_SPECIAL = np.array(
    [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 3.4e38, -3.4e38, 1.1e-38],
    np.float32,
)


def _quantize() -> list[Case]:
    cases = [
        _case("quantize", np.asarray(_RNG.normal(0, 8, s), np.float32), "random") for s in _SHAPES
    ]
    for scale in (1e-9, 3e-7, 0.0078125, 0.1, 1.0, 1234.5, 1e9):
        for zero_point in (-128, 0, 127):
            ties = _ties(float(np.float32(scale)))
            cases.append(_case("quantize", ties, f"ties-{scale}-{zero_point}",
                               scale=scale, zero_point=zero_point))  # fmt: skip
        wide = np.asarray(_RNG.normal(0, 100, (3, 37)) * scale, np.float32)
        cases.append(_case("quantize", wide, f"scale-{scale}", scale=scale))
    for scale in (1e-9, 1.0, 1e9):
        for zero_point in (-128, 5, 127):
            cases.append(_case("quantize", _SPECIAL, f"special-{scale}-{zero_point}",
                               scale=scale, zero_point=zero_point))  # fmt: skip
    image = np.asarray(_RNG.normal(0, 30, (2, 3, 5, 7)), np.float32)
    for low, high in ((-127, 127), (0, 127), (-8, 7), (5, 5)):
        cases.append(_case("quantize", image, f"range-{low}-{high}", quant_min=low, quant_max=high))
    return cases


def _dequantize() -> list[Case]:
    cases = [
        _case("dequantize", _RNG.integers(-128, 128, s, dtype=np.int8).reshape(s), "random")
        for s in _SHAPES
    ]
    codes = np.arange(-128, 128).astype(np.int8)
    for scale in (1e-9, 0.1, 1e9):
        for zero_point in (-128, 0, 127):
            cases.append(_case("dequantize", codes, f"all-{scale}-{zero_point}",
                               scale=scale, zero_point=zero_point))  # fmt: skip
    return cases


def _per_channel() -> list[Case]:
    cases = []
    for shape, axis in (((5, 3, 2), 0), ((3, 7), 1), ((2, 3, 5, 7), 1), ((0, 3), 0), ((1,), 0)):
        channels = shape[axis]
        scales = _RNG.uniform(0.01, 0.2, channels).astype(np.float32)
        points = _RNG.integers(-128, 128, channels).astype(np.int32)
        floats = _RNG.normal(0, 8, shape).astype(np.float32)
        codes = _RNG.integers(-128, 128, shape, dtype=np.int8)
        for zero_points in (points, None):
            common = {"scales": scales, "zero_points": zero_points, "axis": axis}
            limits = {"quant_min": -127, "quant_max": 127}
            for kind, x in (("quantize", floats), ("dequantize", codes)):
                name = f"quantized_decomposed.{kind}_per_channel.default"
                arguments = {"x": x, **common, **limits}
                cases.append(Case(name, arguments, constants=("scales",), id=f"axis-{axis}"))
    return cases


def _far_zero_points() -> list[Case]:
    """Zero points that no int8 code is, up to both ends of int32, and values that meet them."""
    ends = [-(2**31), 2**31 - 1, -(2**31) + 100, 2**31 - 200, -(2**30) - 1, 2**30 + 77]
    near = [-(2**24), 2**24 + 3, -(2**23) - 5, 2**23, -(2**22) - 129, 2**22 + 1, 65535, -65536]
    points = np.array([*ends, *near, -129, 0], np.int32)
    at = -points.astype(np.float64)
    steps = (0, 0.5, -0.5, 1.5, 7, -7, 127, -128, 256, -256, 512, -512, 65536, -65536)
    x = np.stack([*(at + step for step in steps), *np.broadcast_to(_SPECIAL[:, None], (11, 16))])
    arguments = {
        "x": x.astype(np.float32), "scales": np.ones(16, np.float32), "zero_points": points,
        "axis": 1,
    }  # fmt: skip
    name = "quantized_decomposed.quantize_per_channel.default"
    return [
        Case(name, {**arguments, "quant_min": low, "quant_max": high}, ("scales",), f"far-{low}")
        for low, high in ((-128, 127), (-8, 7), (5, 5))
    ]


def _relayout() -> list[Case]:
    return [
        Case("nybble.relayout.default", {"x": _RNG.integers(-128, 128, s, dtype=np.int8)})
        for s in _SHAPES
        if s
    ]


def _copies() -> list[Case]:
    arrays = (
        _RNG.normal(0, 1, (3, 7)).astype(np.float32),
        np.arange(37, dtype=np.int32),
        _RNG.integers(-128, 128, (2, 3, 5, 7), dtype=np.int8),
        np.zeros((0, 3), np.float32),
    )
    return [Case("nybble.copy.default", {"x": x}) for x in arrays]


CASES = [*_copies(), *_quantize(), *_dequantize(), *_relayout()]
CASES += [*_per_channel(), *_far_zero_points()]
