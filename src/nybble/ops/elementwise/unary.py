"""float32 functions of one value: a table, one declaration each, one shader for all."""

import math
from collections.abc import Callable

import numpy as np

from nybble.contract import Array, Float32, Kernel, Param, f32, op, rule, u32

__all__ = ["unary_kernel"]

Function = Callable[[Array], Array]


def unary_kernel(value: str, params: dict[str, Param] | None = None, when: str = "True") -> Kernel:
    """One vector of four values a thread.

    ``value`` is an expression over the call's names that gives WGSL in ``v``, such a vector.
    """
    return Kernel(
        "unary.wgsl",
        grid=("cdiv(words, THREADS)",),
        params={"words": u32("cdiv(count, 4)"), **(params or {})},
        constants={"THREADS": 256, "VALUE": value},
        vectors={"x": 4, "out": 4},
        when=when,
        split=True,
    )


def _declare(name: str, value: str, function: Function, about: str, *, exact: bool = False) -> None:
    def reference(x: Float32[Array, "*shape"]) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(function(x.astype(np.float64)), np.float32)

    reference.__doc__ = about
    op(
        f"aten.{name}.default",
        out=Float32[Array, "*shape"],
        out_variants=[f"aten.{name}.out"],
        kernels=[unary_kernel(repr(value))],
        exact=exact,
    )(reference)


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _sign(x: Array) -> Array:
    return (x > 0).astype(np.float32) - (x < 0)


def _hardswish(x: Array) -> Array:
    # In float32, so that the product overflows where the device's does.
    narrow = x.astype(np.float32)
    return np.asarray(narrow * np.clip(narrow + np.float32(3), 0, 6) / np.float32(6))


_declare("abs", "abs(v)", np.abs, "Magnitude of each value.", exact=True)
_declare("neg", "-v", np.negative, "Each value with its sign changed.", exact=True)
_declare("round", "round(v)", np.rint, "The nearest integer, halves to even.", exact=True)
_declare("floor", "floor(v)", np.floor, "The largest integer not above each value.", exact=True)
_declare("ceil", "ceil(v)", np.ceil, "The smallest integer not below each value.", exact=True)
_declare("trunc", "trunc(v)", np.trunc, "Each value rounded toward zero.", exact=True)
_declare("sign", "select(sign(v), vec4<f32>(), is_nan_of(v))", _sign,
         "-1, 0 or 1; 0 for NaN.", exact=True)  # fmt: skip
_declare("reciprocal", "1.0 / v", np.reciprocal, "One over each value; infinity at zero.")
_declare("exp", "exp_of(v)", np.exp, "e to the power of each value; overflows to infinity.")
_declare("log", "log_of(v)", np.log, "Natural logarithm; -infinity at zero, NaN below.")
_declare("log10", "log_of(v) * 0.4342944819", np.log10,
         "Logarithm to base 10; -infinity at zero, NaN below.")  # fmt: skip
_declare("sqrt", "sqrt(v)", np.sqrt, "Square root; NaN below zero.")
_declare("rsqrt", "inverseSqrt(v)", lambda x: 1 / np.sqrt(x),
         "One over the square root; infinity at zero, NaN below.")  # fmt: skip
_declare("sin", "sin_of(v)", np.sin,
         "Sine of an angle in radians. Up to magnitudes of 10,000 errors stay below 1e-6; beyond "
         "they grow with the angle, until only the range [-1, 1] is right.")  # fmt: skip
_declare("cos", "cos_of(v)", np.cos,
         "Cosine of an angle in radians. Up to magnitudes of 10,000 errors stay below 1e-6; beyond "
         "they grow with the angle, until only the range [-1, 1] is right.")  # fmt: skip
_declare("tanh", "tanh_of(v)", np.tanh, "Hyperbolic tangent.")
_declare("sigmoid", "1.0 / (1.0 + exp_of(-v))", _sigmoid, "Logistic function 1 / (1 + exp(-x)).")
_declare("hardswish", "v * clamp(v + 3.0, vec4<f32>(), vec4<f32>(6.0)) / 6.0", _hardswish,
         "x * clamp(x + 3, 0, 6) / 6; the product may overflow.")  # fmt: skip


@op(
    "aten.gelu.default",
    out=Float32[Array, "*shape"],
    out_variants=["aten.gelu.out"],
    rules=[rule("approximate in ('none', 'tanh')", "approximate must be 'none' or 'tanh'")],
    kernels=[unary_kernel("'gelu_of(v)' if approximate == 'none' else 'gelu_tanh_of(v)'")],
)
def gelu(x: Float32[Array, "*shape"], approximate: str = "none") -> Array:
    """x times the normal distribution function of x, exactly or by its tanh approximation."""
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        if approximate == "tanh":
            inner = np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)
            return np.asarray(0.5 * wide * (1 + np.tanh(inner)), np.float32)
        return np.asarray(0.5 * wide * _erfc(-wide / np.sqrt(2)), np.float32)


def _erfc(x: Array) -> Array:
    """Complementary error function in double."""
    return np.asarray(np.vectorize(math.erfc, otypes=[np.float64])(x))


@op(
    "aten.hardshrink.default",
    out=Float32[Array, "*shape"],
    out_variants=["aten.hardshrink.out"],
    kernels=[
        unary_kernel(
            "'select(v, vec4<f32>(), abs(v) <= vec4<f32>(params.bound))'", {"bound": f32("lambd")}
        )
    ],
    exact=True,
)
def hardshrink(x: Float32[Array, "*shape"], lambd: float = 0.5) -> Array:
    """Values of magnitude up to ``lambd`` become zero, others and NaN stay."""
    return np.where(np.abs(x) <= np.float32(lambd), np.float32(0), x)


@op(
    "aten.leaky_relu.default",
    out=Float32[Array, "*shape"],
    out_variants=["aten.leaky_relu.out"],
    kernels=[
        unary_kernel(
            "'select(v, v * params.slope, v < vec4<f32>())'", {"slope": f32("negative_slope")}
        )
    ],
    exact=True,
)
def leaky_relu(x: Float32[Array, "*shape"], negative_slope: float = 0.01) -> Array:
    """Negative values times ``negative_slope``, others and NaN unchanged."""
    with np.errstate(all="ignore"):
        return np.where(x < 0, x * np.float32(negative_slope), x)


@op(
    "aten.pow.Tensor_Scalar",
    out=Float32[Array, "*shape"],
    out_variants=["aten.pow.Tensor_Scalar_out"],
    kernels=[
        unary_kernel(
            "'v * v' if exponent == 2 else 'v * v * v' if exponent == 3 else '1.0 / v' "
            "if exponent == -1 else 'sqrt(v)' if exponent == 0.5 else 'inverseSqrt(v)' "
            "if exponent == -0.5 else 'power_of(v, vec4<f32>(params.exponent))'",
            {"exponent": f32("exponent")},
        )
    ],
)
def pow_scalar(x: Float32[Array, "*shape"], exponent: float) -> Array:
    """Each value to the power ``exponent``; NaN for a negative base and a fractional exponent.

    Exponents 0.5 and -0.5 are the square root and its reciprocal, at minus infinity too.
    """
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        if abs(exponent) == 0.5:
            root = np.sqrt(wide)
            return (root if exponent > 0 else 1 / root).astype(np.float32)
        return np.power(wide, exponent).astype(np.float32)
