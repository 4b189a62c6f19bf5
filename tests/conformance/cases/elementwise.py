"""Conformance cases of the elementwise functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from nybble.testing import Case

__all__ = ["CASES"]

_RNG = np.random.default_rng(21)
_ODD = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1.0, -1.0, 3.4e38, -3.4e38]


def _floats(*shape: int, scale: float = 2.0) -> Any:
    return _RNG.normal(0, scale, shape).astype(np.float32)


def _ints(*shape: int, bound: int = 1000) -> Any:
    return _RNG.integers(-bound, bound, shape, dtype=np.int32)


def _special(*more: float) -> Any:
    return np.array([*_ODD, *more], np.float32)


def _unary(name: str, *arrays: Any, **attributes: Any) -> list[Case]:
    return [Case(f"aten.{name}", {"x": x, **attributes}) for x in arrays]


def _binary(name: str, *pairs: tuple[Any, Any], **attributes: Any) -> list[Case]:
    return [
        Case(f"aten.{name}", {"x": a, "other": b, **attributes}, id="-".join(map(str, attributes)))
        for a, b in pairs
    ]


def _shapes() -> list[Any]:
    return [_floats(3, 5, 7), _floats(1), _floats(), _floats(0, 3), _special()]


_PLAIN = (
    "abs", "ceil", "exp", "floor", "hardswish", "log", "log10", "neg", "reciprocal", "relu",
    "round", "rsqrt", "sigmoid", "sign", "sqrt", "tanh", "trunc",
)  # fmt: skip

CASES = [
    *(case for name in _PLAIN for case in _unary(f"{name}.default", *_shapes())),
    *(
        case
        for name in ("sin", "cos")
        for case in _unary(f"{name}.default", *_shapes()[:-1], _special()[[0, 1, 2, 3, 5, 6]])
    ),
    *_unary("round.default", np.arange(-5, 6, dtype=np.float32) / 2),
    *_unary("exp.default", _floats(101, scale=30), np.linspace(-105, 90, 37, dtype=np.float32)),
    *_unary("log10.default", np.geomspace(1e-37, 1e38, 37, dtype=np.float32)),
    *_unary("log10.default", np.linspace(0.9, 1.1, 37, dtype=np.float32)),
    *_unary("sqrt.default", np.geomspace(1e-37, 1e38, 37, dtype=np.float32)),
    *_unary("sin.default", np.linspace(-9000, 9000, 101, dtype=np.float32)),
    *_unary("cos.default", np.linspace(-9000, 9000, 101, dtype=np.float32)),
    *_unary("tanh.default", np.linspace(-1, 1, 37, dtype=np.float32), _floats(37, scale=1e-3)),
    *_unary("sigmoid.default", np.linspace(-100, 100, 37, dtype=np.float32)),
    *_unary("gelu.default", *_shapes(), np.linspace(-8, 2, 37, dtype=np.float32)),
    *_unary("gelu.default", *_shapes(), approximate="tanh"),
    *_unary("hardshrink.default", *_shapes(), lambd=0.75),
    *_unary("leaky_relu.default", *_shapes(), negative_slope=0.125),
    *_unary("clamp.default", *_shapes(), low=-0.75, high=0.5),
    *_unary("clamp.default", _special(), low=None, high=0.5),
    *_unary("clamp.default", _special(), low=-0.75, high=None),
    *_unary("clamp.default", _floats(11), low=1.0, high=-1.0),
    *_unary("clamp.default", _ints(29), low=-5, high=None),
    *_unary("clamp.default", _ints(29), low=None, high=7),
    *_unary("hardtanh.default", *_shapes(), min_val=0.0, max_val=6.0),
    *_unary("hardtanh.default", _ints(7, 5), min_val=-100, max_val=100),
    *_unary("relu.default", _ints(7, 5)),
    *(
        case
        for exponent in (2.0, 3.0, 0.5, -0.5, -1.0, 0.0, 1.7)
        for case in _unary(
            "pow.Tensor_Scalar", _floats(3, 7), _special(), _floats(0), exponent=exponent
        )
    ),
    *_binary(
        "pow.Tensor_Tensor",
        (np.abs(_floats(5, 7)), _floats(5, 7)),
        (np.abs(_floats(5, 1)), _floats(7)),
        (_floats(5, 1), _floats(7)),
        *((_special(), np.full(len(_ODD), y, np.float32)) for y in (2, 3, -1, -1.5, 0)),
        *((_special(), np.full(len(_ODD), y, np.float32)) for y in (np.inf, -np.inf, np.nan)),
        (_floats(11), np.array(3.0, np.float32)),
        (_floats(11), np.arange(-5, 6).astype(np.float32)),
    ),
]


def _broadcasts(make: Any) -> list[tuple[Any, Any]]:
    return [
        (make(3, 5, 7), make(3, 5, 7)),
        (make(3, 5, 7), make()),
        (make(3, 5, 7), make(1)),
        (make(), make(3, 5, 7)),
        (make(), make()),
        (make(3, 5, 7), make(7)),
        (make(3, 5, 7), make(5, 1)),
        (make(3, 1, 7), make(5, 1)),
        (make(2, 11, 3, 3), make(1, 11, 1, 1)),
        (make(2, 1, 3, 1, 2, 1, 2, 1), make(1, 3, 1, 2, 1, 2, 1, 3)),
        (make(0, 3), make(3)),
        (make(3, 0), make(1)),
    ]


def _denominators(*shape: int) -> Any:
    return np.asarray(_RNG.uniform(0.5, 3, shape) * _RNG.choice([-1, 1], shape), np.float32)


CASES += [
    *_binary("add.Tensor", *_broadcasts(_floats)),
    *_binary("add.Tensor", *_broadcasts(_ints)[:7]),
    *_binary("add.Tensor", *_broadcasts(_floats)[:7], alpha=-2.5),
    *_binary("add.Tensor", *_broadcasts(_ints)[:7], alpha=3),
    *_binary("add.Tensor", (_special(), _special()[::-1].copy())),
    *_binary("add.Tensor", (_ints(7, bound=2**31 - 1), _ints(7, bound=2**31 - 1))),
    *_binary("sub.Tensor", *_broadcasts(_floats)),
    *_binary("sub.Tensor", *_broadcasts(_ints)[:7], alpha=2),
    *_binary("sub.Tensor", *_broadcasts(_ints)[:7]),
    *_binary("mul.Tensor", *_broadcasts(_floats), *_broadcasts(_ints)[:7]),
    *_binary("mul.Tensor", (_special(), _special()[::-1].copy())),
    *_binary("mul.Tensor", (_ints(7, bound=2**31 - 1), _ints(7, bound=2**31 - 1))),
    *_binary("div.Tensor", *((a, _denominators(*b.shape)) for a, b in _broadcasts(_floats))),
    *_binary("div.Tensor", (_special(), _special()[::-1].copy())),
    *(
        case
        for name in ("minimum.default", "maximum.default")
        for case in _binary(
            name,
            *_broadcasts(_floats),
            *_broadcasts(_ints)[:7],
            (_special(), _special()[::-1].copy()),
        )
    ),
]

# Quotients that are integers, or a unit in the last place beside one.
_DIVISORS = _RNG.normal(0, 3, 67).astype(np.float32)
_MULTIPLES = (_RNG.integers(-1000, 1000, 67) * _DIVISORS.astype(np.float64)).astype(np.float32)
_BESIDE_ZERO = np.array([-2, -0.0, 0, 2, 7, -np.inf], np.float32)
_INFINITE = np.array([[np.inf], [-np.inf]], np.float32)
CASES += [
    case
    for mode in ("floor", "trunc")
    for case in _binary(
        "div.Tensor_mode",
        (_floats(3, 5, 7, scale=30), _floats(3, 5, 7)),
        (_floats(3, 1, 7, scale=30), _floats(5, 1)),
        (_floats(11, scale=30), np.float32(0.1).reshape(1)),
        (np.arange(-33, 34, dtype=np.float32), np.array([3], np.float32)),
        (_MULTIPLES, _DIVISORS),
        (np.nextafter(_MULTIPLES, np.float32(np.inf)), _DIVISORS),
        (np.nextafter(_MULTIPLES, np.float32(-np.inf)), _DIVISORS),
        (_floats(37, scale=1e30), _floats(37)),
        (_special()[[0, 1, 2, 5, 6]], np.array([2], np.float32)),
        (np.array([1, -1, 0, 5], np.float32), np.array([0, 0, 0, np.inf], np.float32)),
        (_BESIDE_ZERO, _INFINITE),
        (_INFINITE, _BESIDE_ZERO),
        (_ints(3, 5, 7), _ints(3, 5, 7, bound=9)),
        (_ints(3, 1, 7), np.array([[3], [-7], [0]], np.int32).reshape(3, 1)),
        (_ints(7), np.array([-3], np.int32)),
        (_floats(0, 3), _floats(3)),
        mode=mode,
    )
]
_ALPHA_NAMES = ("add.Scalar", "sub.Scalar")
CASES += [
    *(case for n in _ALPHA_NAMES for case in _unary(n, *_shapes(), other=0.3, alpha=2.0)),
    *(case for n in _ALPHA_NAMES for case in _unary(n, _ints(3, 7), other=5)),
    *(case for n in ("mul.Scalar", "div.Scalar") for case in _unary(n, *_shapes(), other=-1.7)),
    *_unary("mul.Scalar", _ints(3, 7), other=-(2**31)),
    *_unary("div.Scalar", _floats(3, 7), other=0),
    *_unary("add.Scalar", _floats(3, 7), other=1e300),
]
