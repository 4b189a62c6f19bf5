"""Why a layer is not quantized in the file: the rules of the stock exporter, as sentences."""

from __future__ import annotations

from typing import Any

import torch

from nybble.export.nodes import (
    WEIGHTED,
    arguments,
    is_dequantize,
    is_int4,
    operation,
    parameter,
)
from nybble.export.report import Form

__all__ = ["form_for", "int4_refusal", "refusal_after", "refusal_ahead"]

_INT8_WEIGHTED = WEIGHTED - {"embedding"}
_INT8_FORMS = _INT8_WEIGHTED | {"add"}

_TWO_DIMENSIONAL = {"conv2d", "conv_transpose2d"}


def form_for(name: str, asked: Form) -> Form | None:
    """The form that VulkanBackend has for operation ``name`` when ``asked`` was asked for."""
    if asked == "int8":
        return asked if name in _INT8_FORMS else None
    return {"linear": asked, "embedding": "int4"}.get(name)


def int4_refusal(node: torch.fx.Node) -> str:
    """Why a layer that no rule kept in float32 is not in 4-bit form."""
    name = operation(node)
    if form_for(name, "int4") is None:
        return f"VulkanBackend has no 4-bit form of {name}"
    if not is_int4(node):
        return "only Linear and Embedding modules that the module itself calls are quantized"
    return "the exporter's 4-bit pattern did not match"


def refusal_ahead(node: torch.fx.Node, graph: torch.fx.GraphModule) -> str | None:
    """Why a layer must not be quantized at all: the exporter would stop at its int8 form."""
    name = operation(node)
    if name in _INT8_WEIGHTED and _repeats_a_weight(node):
        return "it shares its weight with a layer before it, and only one of them can be quantized"
    if "conv" not in name:
        return None
    if name not in _TWO_DIMENSIONAL:
        return f"VulkanBackend has int8 convolutions of two dimensions only, not {name}"
    weight = parameter(arguments(node)["weight"], graph)
    if weight is None or name != "conv2d":
        return None
    out_channels, in_channels_per_group = weight.shape[:2]
    depthwise = in_channels_per_group == 1 and arguments(node)["groups"] == out_channels
    if depthwise and out_channels % 4:
        return (
            "the exporter's int8 depthwise convolution needs channels in multiples of 4, "
            f"received {out_channels}"
        )
    return None


def refusal_after(node: torch.fx.Node, graph: torch.fx.GraphModule) -> str:
    """Why the exporter left ``node`` of a converted graph in float32."""
    name, given = operation(node), arguments(node)
    if name not in _INT8_FORMS:
        return f"VulkanBackend has no int8 form of {name}"
    weight = parameter(given.get("weight"), graph)
    reason = None
    if weight is not None and "conv" in name:
        reason = _convolution(name, node, given, weight.shape[0])
    elif weight is not None and weight.shape[1] % 4:
        reason = (
            "the exporter's int8 linear needs input features in multiples of 4, "
            f"received {weight.shape[1]}"
        )
    return reason or _quantization(node, given)


def _repeats_a_weight(node: torch.fx.Node) -> bool:
    """Whether another layer read the weight before; the quantizer annotates a weight once."""
    weight = arguments(node)["weight"]
    return isinstance(weight, torch.fx.Node) and next(iter(weight.users)) is not node


def _convolution(
    name: str, node: torch.fx.Node, given: dict[str, Any], out_channels: int
) -> str | None:
    groups, dilation = given["groups"], given["dilation"]
    transposed = "transpose" in name
    if transposed and groups != 1:
        return f"the quantizer skips transposed convolutions with groups, received {groups}"
    if transposed and any(step != 1 for step in dilation):
        return f"the exporter's int8 transposed convolution needs dilation 1, received {dilation}"
    if node.meta["val"].ndim == 3:
        return "the exporter's int8 convolution needs an input with a batch dimension"
    channels_per_group = out_channels // groups
    if not transposed and groups > 1 and channels_per_group % 4:
        return (
            "the exporter's int8 grouped convolution needs output channels per group in "
            f"multiples of 4, received {channels_per_group}"
        )
    return None


def _quantization(node: torch.fx.Node, given: dict[str, Any]) -> str:
    inputs = [given[key] for key in ("input", "self", "other") if key in given]
    if not all(is_dequantize(item) for item in inputs):
        return "the quantizer did not annotate it"
    if len(node.users) > 1:
        return f"its output is read by {len(node.users)} operators before it is quantized"
    return "the exporter's int8 pattern did not match"
