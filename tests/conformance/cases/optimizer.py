"""Conformance cases of AdamW and of the guard against steps that are not finite."""

from __future__ import annotations

from typing import Any

import numpy as np

from nybble.testing import Case

__all__ = ["CASES"]

_RNG = np.random.default_rng(33)
_NAN, _INFINITY = float("nan"), float("inf")


def _moments(*shape: int) -> dict[str, Any]:
    draws = [_RNG.standard_normal(shape).astype(np.float32) for _ in range(4)]
    return {"param": draws[0], "m": draws[1], "v": np.square(draws[2]), "grad": draws[3]}


def _hyper(step: int) -> Any:
    rest = (0.9, 0.999, 1 - 0.9, 1 - 0.999)
    return np.array([1e-2, *rest, 1e-8, 0.1, 1 - 0.9**step, 1 - 0.999**step], np.float32)


_WELL = np.array([-1, 0], np.int32)
_SCALARS = {
    "lr": 1e-2, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.1,
    "bias_correction1": 0.1, "bias_correction2": 0.001,
}  # fmt: skip

CASES = [
    Case(
        "nybble.adamw.default",
        {**_moments(*shape), "hyper": _hyper(step), "fault": fault},
        id=f"step{step}-fault{fault[0]}",
    )
    for shape in ((3, 7), (1,), (1031,), (0, 3), ())
    for step, fault in ((1, _WELL), (100, _WELL), (3, np.array([0, 5], np.int32)))
]
CASES += [
    Case("et_vk.adamw_step.default", {**_moments(*shape), **_SCALARS})
    for shape in ((3, 7), (1,), (1031,))
]


def _with(size: int, **places: float) -> Any:
    values = _RNG.standard_normal(size).astype(np.float32)
    for place, value in places.items():
        values[int(place[1:])] = value
    return values


CASES += [
    Case("nybble.count_nonfinite.default", {"x": x}, id=about)
    for about, x in {
        "none": _with(7),
        "nan": _with(7, _6=_NAN),
        "infinities": _with(11, _0=_INFINITY, _10=-_INFINITY),
        "huge": np.full(5, 3.4e38, np.float32),
        "parts": _with(50_021, _3=_NAN, _1024=_NAN, _20_000=_INFINITY, _50_020=_NAN),
        "scalar": np.asarray(_NAN, np.float32),
        "empty": np.zeros((0, 3), np.float32),
    }.items()
]
CASES += [
    Case("nybble.note_fault.default", {"fault": fault, "counts": counts, "slot": 4}, id=about)
    for about, fault, counts in (
        ("well", _WELL, np.zeros(3, np.int32)),
        ("first", _WELL, np.array([0, 2, 1], np.int32)),
        ("later", np.array([1, 9], np.int32), np.array([3], np.int32)),
        ("many", _WELL, np.ones(512, np.int32)),
    )
]
_TABLE = _RNG.standard_normal((16, 9)).astype(np.float32)
CASES += [
    Case(
        "nybble.step_values.default",
        {"table": _TABLE, "applied": np.array([applied], np.int32),
         "base": np.array([base], np.int32)},
        id=f"{applied}-{base}",
    )
    for applied, base in ((0, 0), (7, 4), (40, 4), (3, 4), (15, 0))
]  # fmt: skip
CASES += [
    Case(
        "nybble.advance.default",
        {"applied": np.array([12], np.int32), "fault": np.array([slot, 0], np.int32)},
        id=f"fault{slot}",
    )
    for slot in (-1, 0, 3)
]
