"""The stage that ends every int8 product: an integer sum becomes a value, then a code."""

from __future__ import annotations

import numpy as np

from nybble.contract.annotations import Array
from nybble.contract.kernel import f32, i32
from nybble.contract.layouts import constant_layout
from nybble.contract.operator import Rule, rule

from .arithmetic import flush_subnormals, quantize, scale_rule, zero_point_rule

__all__ = [
    "FLOAT_CONSTANTS", "FLUSHED", "INPUT_PARAMS", "LONGEST_SUM", "STAGE_CONSTANTS", "STAGE_PARAMS",
    "code_rules", "output_codes", "output_values", "vector_rules",
]  # fmt: skip

LONGEST_SUM = 65793
"""Products of an int8 weight and a shifted int8 code that an int32 holds: 65793 * 128 * 255."""

INPUT_PARAMS = {"scale_in": f32("scale_in"), "zero_point_in": i32("zero_point_in")}
"""The uniform fields that ``std/output_stage.wgsl`` reads for float32 results."""

STAGE_PARAMS = {
    **INPUT_PARAMS,
    "inverse": f32("reciprocal(scale_out)"),
    "zero_point_out": i32("zero_point_out"),
    "code_min": i32("code_min"),
    "code_max": i32("code_max"),
}
"""The uniform fields that ``std/output_stage.wgsl`` reads for int8 results."""

STAGE_CONSTANTS: dict[str, int | float | bool | str] = {
    "QUANTIZED": True,
    "RELU": "activation == 'relu'",
}
"""The constants that go with :data:`STAGE_PARAMS`."""

FLOAT_CONSTANTS: dict[str, int | float | bool | str] = {"QUANTIZED": False}
"""The constants that go with :data:`INPUT_PARAMS`."""


FLUSHED = constant_layout("flushed", lambda scales, names: flush_subnormals(scales))
"""Weight scales with subnormals taken as zero, as some GPUs would and others would not."""


def code_rules() -> tuple[Rule, ...]:
    """What the scales, zero points and code range of an int8 result must satisfy."""
    return (
        scale_rule("scale_in"),
        scale_rule("scale_out"),
        zero_point_rule("zero_point_in"),
        zero_point_rule("zero_point_out"),
        rule("-128 <= code_min <= code_max <= 127", "the code range must lie within int8"),
    )


def vector_rules(channels: str) -> tuple[Rule, ...]:
    """Scales and biases hold at least one entry an output channel; programs pad them to fours."""
    return (
        rule(f"weight_scales[0] >= {channels}", "weight_scales needs one entry an output channel"),
        rule(f"bias is None or bias[0] >= {channels}", "bias needs one entry an output channel"),
    )


def output_values(
    sums: Array, scale_in: float, weight_scales: Array, bias: Array | None, axis: int
) -> Array:
    """``f32(sum) * scale_in * weight_scales[channel] + bias[channel]``, left to right in float32.

    Args:
        sums: integers of at most 32 bits, in any type that holds them exactly.
        scale_in: the input's scale.
        weight_scales: float32, entries beyond the channels are ignored.
        bias: the same, or None to add nothing.
        axis: the axis of ``sums`` that holds the output channels.
    """
    shape = [1] * sums.ndim
    channels = shape[axis] = sums.shape[axis]
    scales = flush_subnormals(weight_scales[:channels].astype(np.float32)).reshape(shape)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        values = sums.astype(np.int32).astype(np.float32) * np.float32(scale_in) * scales
        if bias is not None:
            values = values + bias[:channels].astype(np.float32).reshape(shape)
    return values.astype(np.float32, copy=False)


def output_codes(
    values: Array,
    activation: str,
    scale_out: float,
    zero_point_out: int,
    code_min: int,
    code_max: int,
) -> Array:
    """The int8 codes of :func:`output_values` after an activation, ``"none"`` or ``"relu"``."""
    if activation == "relu":
        values = np.maximum(values, np.float32(0))
    return quantize(values, scale_out, zero_point_out, code_min, code_max)
