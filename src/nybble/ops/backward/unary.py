"""Gradients of functions of one value: a table of expressions, one shader.

Each operator takes the gradient of the result, ``d_out``, and one forward ``value``: the result
where the derivative is simplest in it, else the argument.
"""

import math
from collections.abc import Callable

import numpy as np

from nybble.contract import Array, Float32, Kernel, Param, f32, op, u32

__all__: list[str] = []

Derivative = Callable[[Array], Array]
_SINGLE = "{0} if {0} is not None and abs({0}) < 2.0**128 else {1}"


def _kernel(value: str, params: dict[str, Param] | None = None) -> Kernel:
    """``value`` is an expression that gives WGSL in the vectors ``d`` and ``v``."""
    return Kernel(
        "unary.wgsl",
        grid=("cdiv(words, THREADS)",),
        params={"words": u32("cdiv(count, 4)"), **(params or {})},
        constants={"THREADS": 256, "VALUE": value},
        vectors={"d_out": 4, "value": 4, "out": 4},
        split=True,
    )


def _product(d_out: Array, value: Array, derivative: Derivative) -> Array:
    with np.errstate(all="ignore"):
        slope = derivative(value.astype(np.float64))
        return np.asarray(d_out * slope, np.float32)


def _declare(name: str, value: str, derivative: Derivative, about: str) -> None:
    def reference(d_out: Float32[Array, "*shape"], value: Float32[Array, "*shape"]) -> Array:
        return _product(d_out, value, derivative)

    reference.__doc__ = about
    op(
        f"nybble.{name}_backward.default",
        out=Float32[Array, "*shape"],
        kernels=[_kernel(repr(value))],
        operations="2 * count",
    )(reference)


_declare("tanh", "d * (1.0 - v * v)", lambda y: 1 - y * y, "Gradient of tanh from its result.")
_declare("sigmoid", "d * v * (1.0 - v)", lambda y: y * (1 - y),
         "Gradient of sigmoid from its result.")  # fmt: skip
_declare("sqrt", "d * 0.5 / v", lambda y: 0.5 / y, "Gradient of the square root from its result.")
_declare("rsqrt", "d * -0.5 * v * v * v", lambda y: -0.5 * y**3,
         "Gradient of the reciprocal square root from its result.")  # fmt: skip
_declare("reciprocal", "-d * v * v", lambda y: -y * y, "Gradient of 1 / x from its result.")
_declare("abs", "d * select(sign(v), v, is_nan_of(v))", np.sign,
         "Gradient of the magnitude, 0 at 0, from its argument.")  # fmt: skip
_declare("hardswish",
         "d * select(select((2.0 * v + 3.0) / 6.0, vec4<f32>(1.0), v >= vec4<f32>(3.0)), "
         "vec4<f32>(), v <= vec4<f32>(-3.0))",
         lambda x: np.where(x <= -3, 0, np.where(x >= 3, 1, (2 * x + 3) / 6)),
         "Gradient of hardswish from its argument.")  # fmt: skip


def _normal_density(x: Array) -> Array:
    return np.asarray(np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi))


def _gelu_slope(x: Array) -> Array:
    below = 0.5 * np.vectorize(math.erfc, otypes=[np.float64])(-x / math.sqrt(2))
    return np.asarray(below + x * _normal_density(x))


def _gelu_tanh_slope(x: Array) -> Array:
    root = 2 * math.sqrt(2 / math.pi)
    share = 1 / (1 + np.exp(-root * (x + 0.044715 * x**3)))
    return np.asarray(share + x * share * (1 - share) * root * (1 + 0.134145 * x * x))


_GELU = "d * (0.5 * erfc_of(v * -0.70710678) + v * 0.39894228 * exp_of(-0.5 * v * v))"
_SHARE = "(1.0 / (1.0 + exp_of(v * (v * v * -0.0713548163 - 1.59576912))))"
_GELU_TANH = (
    f"d * ({_SHARE} + v * {_SHARE} * (1.0 - {_SHARE}) * (1.59576912 + 0.214064449 * v * v))"
)


@op(
    "nybble.gelu_backward.default",
    out=Float32[Array, "*shape"],
    kernels=[_kernel(f"{_GELU!r} if approximate == 'none' else {_GELU_TANH!r}")],
    operations="12 * count",
)
def gelu_backward(
    d_out: Float32[Array, "*shape"], value: Float32[Array, "*shape"], approximate: str = "none"
) -> Array:
    """Gradient of gelu, or of its tanh approximation, from its argument."""
    return _product(d_out, value, _gelu_tanh_slope if approximate == "tanh" else _gelu_slope)


@op(
    "nybble.relu_backward.default",
    out=Float32[Array, "*shape"],
    kernels=[_kernel("'select(vec4<f32>(), d, v > vec4<f32>())'")],
)
def relu_backward(d_out: Float32[Array, "*shape"], value: Float32[Array, "*shape"]) -> Array:
    """Gradient of relu from its result: passes where that is positive, else 0 whatever it is."""
    return np.where(value > 0, d_out, np.float32(0))


_WITHIN = "select(vec4<f32>(), d, (v >= vec4(params.low)) & (v <= vec4(params.high)))"


@op(
    "nybble.clamp_backward.default",
    out=Float32[Array, "*shape"],
    kernels=[
        _kernel(
            f"{_WITHIN!r} if inclusive else {_WITHIN.replace('=', '')!r}",
            {
                "low": f32(_SINGLE.format("low", "-float('inf')")),
                "high": f32(_SINGLE.format("high", "float('inf')")),
            },
        )
    ],
)
def clamp_backward(
    d_out: Float32[Array, "*shape"],
    value: Float32[Array, "*shape"],
    low: float | None = None,
    high: float | None = None,
    inclusive: bool = True,
) -> Array:
    """Gradient of a clamp from its argument: passes within the bounds, or also at them."""
    bottom = np.float32(-np.inf if low is None or abs(low) >= 2.0**128 else low)
    top = np.float32(np.inf if high is None or abs(high) >= 2.0**128 else high)
    within = (value >= bottom) & (value <= top)
    if not inclusive:
        within &= (value != bottom) & (value != top)
    return np.where(within, d_out, np.float32(0))


@op(
    "nybble.leaky_relu_backward.default",
    out=Float32[Array, "*shape"],
    kernels=[
        _kernel("'select(d * params.slope, d, v > vec4<f32>())'", {"slope": f32("negative_slope")})
    ],
)
def leaky_relu_backward(
    d_out: Float32[Array, "*shape"],
    value: Float32[Array, "*shape"],
    negative_slope: float = 0.01,
) -> Array:
    """Gradient of leaky relu from its argument; at 0 it is the negative side's."""
    with np.errstate(all="ignore"):
        return np.where(value > 0, d_out, d_out * np.float32(negative_slope))
