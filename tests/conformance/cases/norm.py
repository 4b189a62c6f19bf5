"""Conformance cases of the normalizations."""

from __future__ import annotations

from typing import Any

import numpy as np

from nybble.testing import Case

__all__ = ["CASES"]

_RNG = np.random.default_rng(32)
_NAN, _INFINITY = float("nan"), float("inf")


def _floats(*shape: int, mean: float = 0.5) -> Any:
    return _RNG.normal(mean, 2, shape).astype(np.float32)


def _layer(
    shape: tuple[int, ...], over: int = 1, *, affine: str = "wb", eps: float = 1e-5,
    label: str = "",
) -> Case:  # fmt: skip
    last = shape[len(shape) - over :]
    arguments = {
        "x": _floats(*shape),
        "normalized_shape": last,
        "weight": _floats(*last) if "w" in affine else None,
        "bias": _floats(*last) if "b" in affine else None,
        "eps": eps,
    }
    return Case("aten.native_layer_norm.default", arguments, ("weight", "bias"), label or affine)


def _special(name: str, value: float) -> Case:
    x = _floats(3, 7)
    x[1, 2] = value
    if name == "layer":
        arguments = {"x": x, "normalized_shape": (7,), "weight": None, "bias": None, "eps": 1e-5}
        return Case("aten.native_layer_norm.default", arguments, id=f"{value}")
    return Case(
        "et_vk.rms_norm.default", {"x": x, "weight": _floats(7), "eps": 1e-5}, id=f"{value}"
    )


CASES = [
    _layer((2, 3, 8)),
    _layer((5, 7), affine=""),
    _layer((5, 7), affine="w"),
    _layer((5, 7), affine="b"),
    _layer((3, 5, 7), 2),
    _layer((3, 5, 7), 3),
    _layer((2, 3, 2, 1, 2, 3, 2, 3), 4),
    _layer((1,)),
    _layer((3, 1)),
    _layer((0, 5)),
    _layer((67, 3), eps=0.0),
    _layer((3, 1031)),
    _layer((2, 5003)),
    _special("layer", _NAN),
    *(
        Case("et_vk.rms_norm.default", {"x": _floats(*s), "weight": _floats(s[-1]), "eps": 1e-6},
             ("weight",))
        for s in [(2, 3, 8), (7,), (1, 1), (0, 5), (67, 5), (3, 1031), (2, 5003)]
    ),
    _special("rms", _NAN),
]  # fmt: skip


def _group(shape: tuple[int, ...], groups: int, *, affine: bool = True) -> Case:
    n, c, *rest = shape
    arguments = {
        "x": _floats(*shape),
        "weight": _floats(c) if affine else None,
        "bias": _floats(c) if affine else None,
        "batch": n,
        "channels": c,
        "size": int(np.prod(rest)),
        "groups": groups,
        "eps": 1e-5,
    }
    return Case("aten.native_group_norm.default", arguments, ("weight", "bias"), f"groups{groups}")


def _batch(shape: tuple[int, ...], *, affine: bool = True, label: str = "") -> Case:
    c = shape[1]
    arguments = {
        "x": _floats(*shape),
        "weight": _floats(c) if affine else None,
        "bias": _floats(c) if affine else None,
        "mean": _floats(c),
        "variance": np.abs(_floats(c)),
        "momentum": 0.1,
        "eps": 1e-3,
    }
    return Case(
        "aten._native_batch_norm_legit_no_training.default",
        arguments,
        ("weight", "bias", "mean", "variance"),
        label,
    )


CASES += [
    _group((2, 6, 3, 5), 3),
    _group((2, 6, 3, 5), 1, affine=False),
    _group((2, 6, 3, 5), 6),
    _group((1, 4), 2),
    _group((0, 4, 3), 2),
    _group((3, 4, 7), 2),
    _group((1, 4, 37, 31), 2),
    _batch((2, 5, 3, 7)),
    _batch((2, 5, 3, 7), affine=False, label="plain"),
    _batch((11, 3)),
    _batch((1, 3, 2, 3, 5)),
    _batch((0, 3, 5)),
]
