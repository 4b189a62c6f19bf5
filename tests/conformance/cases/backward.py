"""Conformance cases of gradients with kernels of their own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nybble.testing import Case

__all__ = ["CASES"]

_RNG = np.random.default_rng(31)
_NAN = math.nan
_UNARY = (
    "relu", "tanh", "sigmoid", "abs", "hardswish", "gelu", "clamp", "leaky_relu", "sqrt", "rsqrt",
    "reciprocal",
)  # fmt: skip
_ATTRIBUTES: dict[str, list[dict[str, Any]]] = {
    "gelu": [{"approximate": "none"}, {"approximate": "tanh"}],
    "clamp": [
        {"low": -0.5, "high": 0.5},
        {"low": None, "high": 1.0},
        {"low": 0.25, "high": None},
        {"low": 0.0, "high": 1.7976931348623157e308},
        {"low": -0.5, "high": 0.5, "inclusive": False},
    ],
    "leaky_relu": [{"negative_slope": 0.01}],
}


def _floats(*shape: int) -> Any:
    return _RNG.normal(0, 1, shape).astype(np.float32)


def _values(name: str, *shape: int) -> Any:
    values = _floats(*shape)
    return np.abs(values) + np.float32(0.25) if name in ("sqrt", "rsqrt", "reciprocal") else values


_EDGES = np.array([0, -0.0, 0.5, -0.5, 3, -3, 1, 20, -20, 0.25, _NAN], np.float32)

CASES = [
    Case(
        f"nybble.{name}_backward.default",
        {"d_out": _floats(*shape), "value": _values(name, *shape), **attributes},
        id="-".join(map(str, attributes.values())),
    )
    for name in _UNARY
    for attributes in _ATTRIBUTES.get(name, [{}])
    for shape in ((), (5,), (3, 7), (2, 3, 4), (0, 3), (1031,))
]
CASES += [
    Case(
        f"nybble.{name}_backward.default",
        {"d_out": np.ones(_EDGES.shape, np.float32), "value": _EDGES, **attributes},
        id="edges",
    )
    for name in _UNARY
    if name not in ("sqrt", "rsqrt", "reciprocal")
    for attributes in _ATTRIBUTES.get(name, [{}])
]
CASES += [
    Case(
        f"nybble.{name}_backward.default",
        {"d_out": np.full(_EDGES.shape, d_out, np.float32), "value": _EDGES, **attributes},
        id=f"edges-{d_out}",
    )
    for name in ("relu", "clamp")
    for attributes in _ATTRIBUTES.get(name, [{}])
    for d_out in (_NAN, math.inf)
]


def _softmax(x: Any, dim: int) -> Any:
    exponentials = np.exp(x - x.max(dim, keepdims=True))
    return (exponentials / exponentials.sum(dim, keepdims=True)).astype(np.float32)


CASES += [
    Case(
        f"nybble.{name}.default",
        {
            "d_out": _floats(*shape),
            "value": _softmax(_floats(*shape), dim) if name[0] == "s" else -abs(_floats(*shape)),
            "dim": dim,
        },
        id=f"dim{dim}",
    )
    for name in ("softmax_backward", "log_softmax_backward")
    for shape, dim in (
        ((3, 5), 1), ((3, 5), 0), ((2, 3, 4), 1), ((2, 67), -1), ((1, 1), 0), ((2, 1283), 1),
        ((1283, 2), 0), ((7,), 0),
    )
]  # fmt: skip
CASES += [
    Case(
        "nybble.norm_backward.default",
        {
            "d_out": _floats(*shape),
            "x": _floats(*shape) * np.float32(scale),
            "weight": _floats(shape[-1]) if weighted else None,
            "eps": 1e-5,
            "center": center,
        },
        id=f"{'layer' if center else 'rms'}-{scale}",
    )
    for center in (True, False)
    for shape, weighted, scale in (
        ((3, 7), True, 1), ((3, 7), False, 1), ((2, 3, 64), True, 30), ((1, 1283), True, 1),
        ((5,), True, 1), ((2, 5), True, 1), ((3, 11), True, 1e-3), ((0, 5), True, 1),
    )
]  # fmt: skip
CASES += [
    Case("nybble.place.default", {"x": _floats(*shape), "dim": dim, **where})
    for shape, dim, where in (
        ((3, 5), 1, {"extent": 11, "start": 2, "step": 2}),
        ((3, 5), 0, {"extent": 7, "start": 4, "step": 1}),
        ((2, 1, 3), -2, {"extent": 5, "start": 3, "step": 1}),
        ((5,), 0, {"extent": 5, "start": 0, "step": 1}),
        ((0, 3), 0, {"extent": 4, "start": 1, "step": 1}),
        ((2, 3), -1, {"extent": 97, "start": 1, "step": 37}),
    )
]
CASES += [
    Case(
        "nybble.scatter_rows.default",
        {
            "d_out": _floats(*shape, width),
            "indices": _RNG.integers(-2, extent + 2, shape).astype(np.int32),
            "extent": extent,
        },
    )
    for shape, width, extent in (((7,), 5, 3), ((2, 11), 4, 37), ((), 3, 1), ((0,), 3, 2))
]
