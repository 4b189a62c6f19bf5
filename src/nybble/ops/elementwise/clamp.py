"""Bounds on values, float32 and int32: clamp, hardtanh, relu."""

from typing import Any

import numpy as np

from nybble.contract import Array, Kernel, Param, Real, f32, i32, op, rule, u32

__all__ = ["clamp", "hardtanh", "relu"]

# Programs write "no bound" as a double beyond float32 too.
_SINGLE = "{0} if abs({0}) < 2.0**128 else {0} * float('inf')"
_INT32_LOWEST, _INT32_HIGHEST = -(2**31), 2**31 - 1


def _kernels(low: str | None, high: str | None) -> list[Kernel]:
    """A kernel for each element type; a bound that is absent, or None, is the type's own."""
    bounds: dict[str, dict[str, Param]] = {
        "float32": {
            "low": f32(_bound(low, "-float('inf')", _SINGLE)),
            "high": f32(_bound(high, "float('inf')", _SINGLE)),
        },
        "int32": {
            "low": i32(_bound(low, str(_INT32_LOWEST), "int({0})")),
            "high": i32(_bound(high, str(_INT32_HIGHEST), "int({0})")),
        },
    }
    return [
        Kernel(
            "clamp.wgsl",
            grid=("cdiv(words, THREADS)",),
            params={"words": u32("cdiv(count, 4)"), **params},
            constants={"THREADS": 256, "FLOAT": dtype == "float32"},
            vectors={"x": 4, "out": 4},
            when=f"x_dtype == '{dtype}'",
            split=True,
        )
        for dtype, params in bounds.items()
    ]


def _bound(name: str | None, fallback: str, value: str) -> str:
    return fallback if name is None else f"{fallback} if {name} is None else {value.format(name)}"


def _bounded(x: Array, low: Any, high: Any) -> Array:
    """min(max(x, low), high) by comparisons, so that NaN stays NaN."""
    with np.errstate(over="ignore"):
        low, high = (None if b is None else x.dtype.type(b) for b in (low, high))
    if low is not None:
        x = np.where(x < low, low, x)
    if high is not None:
        x = np.where(x > high, high, x)
    return np.array(x)


def _bound_rules(low: str, high: str) -> list[Any]:
    inside = f"{_INT32_LOWEST} <= {{0}} <= {_INT32_HIGHEST} and {{0}} == int({{0}})"
    return [
        rule(
            f"x_dtype != 'int32' or {name} is None or ({inside.format(name)})",
            f"the bound '{name}' of an int32 tensor must be an int32",
        )
        for name in (low, high)
    ]


@op(
    "aten.clamp.default",
    out=Real[Array, "*shape"],
    out_variants=["aten.clamp.out"],
    rules=_bound_rules("low", "high"),
    kernels=_kernels("low", "high"),
    exact=True,
)
def clamp(x: Real[Array, "*shape"], low: float | None = None, high: float | None = None) -> Array:
    """Values limited to [low, high]; None leaves a side open; NaN stays NaN.

    Where ``low`` exceeds ``high`` every value becomes ``high``, as in PyTorch.
    """
    return _bounded(x, low, high)


@op(
    "aten.hardtanh.default",
    out=Real[Array, "*shape"],
    out_variants=["aten.hardtanh.out"],
    rules=_bound_rules("min_val", "max_val"),
    kernels=_kernels("min_val", "max_val"),
    exact=True,
)
def hardtanh(x: Real[Array, "*shape"], min_val: float = -1.0, max_val: float = 1.0) -> Array:
    """Values limited to [min_val, max_val]; NaN stays NaN. relu6 is hardtanh with 0 and 6."""
    return _bounded(x, min_val, max_val)


@op(
    "aten.relu.default",
    out=Real[Array, "*shape"],
    out_variants=["aten.relu.out"],
    derived={"zero": "0"},
    kernels=_kernels("zero", None),
    exact=True,
)
def relu(x: Real[Array, "*shape"]) -> Array:
    """Negative values become zero; NaN stays NaN."""
    return _bounded(x, 0, None)
