"""Gradients of elementwise functions."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from nybble.graph import Call, GraphBuilder, Value
from nybble.graph.gradients import gradient, no_gradient

__all__: list[str] = []

Gradients = Mapping[str, Value]


def _scaled(b: GraphBuilder, d_out: Value, factor: float) -> Value:
    return d_out if factor == 1 else b.math.mul(d_out, factor)


@gradient("aten.add.Tensor")
def add(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """Both operands get it; the second times alpha."""
    return {"x": d_out, "other": _scaled(b, d_out, call.arguments["alpha"])}


@gradient("aten.sub.Tensor")
def sub(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """The second operand gets it times -alpha."""
    return {"x": d_out, "other": _scaled(b, d_out, -call.arguments["alpha"])}


@gradient("aten.mul.Tensor")
def mul(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """Each operand gets it times the other."""
    x, other = call.arguments["x"], call.arguments["other"]
    return {"x": b.math.mul(d_out, other), "other": b.math.mul(d_out, x)}


@gradient("aten.div.Tensor")
def div(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """d / other, and -d * out / other."""
    other = call.arguments["other"]
    share = b.math.div(d_out, other)
    return {"x": share, "other": b.math.neg(b.math.mul(share, call.outputs[0]))}


@gradient("aten.pow.Tensor_Scalar")
def power(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """d * p * x^(p - 1)."""
    x, exponent = call.arguments["x"], call.arguments["exponent"]
    if exponent == 0:
        return {"x": b.constant(np.zeros(x.shape, np.float32))}
    if exponent == 2:
        slope = b.math.mul(x, 2.0)
    else:
        lower = b.call("aten.pow.Tensor_Scalar", x=x, exponent=exponent - 1)
        slope = b.math.mul(lower, float(exponent))
    return {"x": b.math.mul(d_out, slope)}


@gradient("aten.exp.default")
def exp(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """d * out."""
    return {"x": b.math.mul(d_out, call.outputs[0])}


@gradient("aten.log.default")
def log(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """d / x."""
    return {"x": b.math.div(d_out, call.arguments["x"])}


@gradient("aten.log10.default")
def log10(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """d / (x ln 10)."""
    share = b.math.div(d_out, call.arguments["x"])
    return {"x": b.math.mul(share, 1 / math.log(10))}


@gradient("aten.neg.default")
def neg(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """-d."""
    return {"x": b.math.neg(d_out)}


@gradient("aten.sin.default")
def sin(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """d * cos x."""
    return {"x": b.math.mul(d_out, b.call("aten.cos.default", x=call.arguments["x"]))}


@gradient("aten.cos.default")
def cos(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """-d * sin x."""
    slope = b.call("aten.sin.default", x=call.arguments["x"])
    return {"x": b.math.neg(b.math.mul(d_out, slope))}


def _from_result(name: str) -> None:
    def row(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
        return {"x": b.call(f"nybble.{name}_backward.default", d_out=d_out, value=call.outputs[0])}

    gradient(f"aten.{name}.default")(row)


def _from_argument(name: str, *attributes: str) -> None:
    def row(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
        given = {attribute: call.arguments[attribute] for attribute in attributes}
        x = call.arguments["x"]
        return {"x": b.call(f"nybble.{name}_backward.default", d_out=d_out, value=x, **given)}

    gradient(f"aten.{name}.default")(row)


for _name in ("relu", "tanh", "sigmoid", "sqrt", "rsqrt", "reciprocal"):
    _from_result(_name)
_from_argument("abs")
_from_argument("hardswish")
_from_argument("gelu", "approximate")
_from_argument("leaky_relu", "negative_slope")


def _clamped(
    b: GraphBuilder, call: Call, d_out: Value, low: str, high: str, *, inclusive: bool
) -> Gradients:
    bounds = {"low": call.arguments[low], "high": call.arguments[high], "inclusive": inclusive}
    x = call.arguments["x"]
    return {"x": b.call("nybble.clamp_backward.default", d_out=d_out, value=x, **bounds)}


@gradient("aten.clamp.default")
def clamp(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """d within the bounds, both included."""
    return _clamped(b, call, d_out, "low", "high", inclusive=True)


@gradient("aten.hardtanh.default")
def hardtanh(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """d within the bounds, none included: relu6 is flat at 0, as relu is."""
    return _clamped(b, call, d_out, "min_val", "max_val", inclusive=False)


@gradient("aten.minimum.default")
def minimum(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """d goes to the smaller operand; of equal ones, half to each."""
    x, other = call.arguments["x"], call.arguments["other"]
    return _extreme(b, d_out, b.math.sub(other, x), b.math.sub(x, other))


@gradient("aten.maximum.default")
def maximum(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """d goes to the larger operand; of equal ones, half to each."""
    x, other = call.arguments["x"], call.arguments["other"]
    return _extreme(b, d_out, b.math.sub(x, other), b.math.sub(other, x))


def _extreme(b: GraphBuilder, d_out: Value, ahead: Value, behind: Value) -> Gradients:
    half = b.math.mul(d_out, 0.5)
    return {"x": _where_ahead(b, half, ahead), "other": _where_ahead(b, half, behind)}


def _where_ahead(b: GraphBuilder, half: Value, lead: Value) -> Value:
    """Twice ``half`` where ``lead`` is positive, once where it is 0."""
    shares = (
        b.call(
            "nybble.clamp_backward.default",
            d_out=half, value=lead, low=0.0, high=None, inclusive=inclusive,
        )
        for inclusive in (True, False)
    )  # fmt: skip
    value: Value = b.math.add(*shares)
    return value


no_gradient(
    "aten.round.default", "aten.floor.default", "aten.ceil.default", "aten.trunc.default",
    "aten.sign.default",
    because="it is constant between steps",
)  # fmt: skip
no_gradient("aten.hardshrink.default", because="it jumps at its bounds")


@gradient("aten.add.Scalar", "aten.sub.Scalar")
def shifted(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """d itself."""
    return {"x": d_out}


@gradient("aten.mul.Scalar")
def multiplied(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """d times the number."""
    return {"x": b.call("aten.mul.Scalar", x=d_out, other=call.arguments["other"])}


@gradient("aten.div.Scalar")
def divided(b: GraphBuilder, call: Call, d_out: Value) -> Gradients:
    """d divided by the number."""
    return {"x": b.call("aten.div.Scalar", x=d_out, other=call.arguments["other"])}
