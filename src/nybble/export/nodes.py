"""Reads nodes of captured graphs: their operation, named arguments, parameters, quantization."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

__all__ = [
    "WEIGHTED",
    "activation_scales",
    "arguments",
    "inputs_of",
    "is_dequantize",
    "is_int4",
    "module_of",
    "operation",
    "parameter",
    "weight_scales",
]

# Operations with a trained weight, by their names in ATen.
WEIGHTED = frozenset(
    {
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "embedding",
        "linear",
    }
)

_PER_TENSOR = "quantized_decomposed::dequantize_per_tensor"
_PER_CHANNEL = "quantized_decomposed::dequantize_per_channel"
_IN_BLOCKS = "torchao::dequantize_affine"
_QUANTIZE = "quantized_decomposed::quantize_per_tensor"
_INNER_TENSOR = "export::access_subclass_inner_tensor"


def _schema_name(node: object) -> str:
    target = node.target if isinstance(node, torch.fx.Node) else None
    schema = getattr(target, "_schema", None)
    return "" if schema is None else str(schema.name)


def operation(node: torch.fx.Node) -> str:
    """The ATen operation of a call ("conv2d", "add"), or "" for another kind of node."""
    namespace, _, name = _schema_name(node).partition("::")
    return name.removesuffix("_") if namespace == "aten" else ""


def is_dequantize(node: object) -> bool:
    """Whether ``node`` turns integer codes into float32."""
    return _schema_name(node) in {_PER_TENSOR, _PER_CHANNEL, _IN_BLOCKS}


def is_int4(node: torch.fx.Node) -> bool:
    """Whether a call reads a weight of 4-bit codes with a scale for each block."""
    return _schema_name(arguments(node).get("weight")) == _IN_BLOCKS


def arguments(node: torch.fx.Node) -> dict[str, Any]:
    """The arguments of a call by their names in the operator's schema, defaults included."""
    declared = node.target._schema.arguments  # noqa: SLF001  (torch has no public way to it)
    given = dict(zip((argument.name for argument in declared), node.args, strict=False))
    given.update(node.kwargs)
    return {argument.name: argument.default_value for argument in declared} | given


def parameter(value: object, graph: torch.fx.GraphModule) -> torch.Tensor | None:
    """The stored tensor that ``value`` reads, through a dequantization if there is one."""
    if not isinstance(value, torch.fx.Node):
        return None
    node = value.args[0] if is_dequantize(value) else value
    if _schema_name(node) == _INNER_TENSOR:
        owner = parameter(node.args[0], graph)
        return getattr(owner, node.args[1])
    if node.op != "get_attr":
        return None
    *owners, name = node.target.split(".")
    owner = graph.get_submodule(".".join(owners))
    return getattr(owner, name)


def weight_scales(weight: object, graph: torch.fx.GraphModule) -> torch.Tensor | None:
    """The scales of a quantized weight, by channel or by block; None if it is not quantized."""
    scales_at = {_PER_CHANNEL: 1, _IN_BLOCKS: 2}.get(_schema_name(weight))
    if scales_at is None or not isinstance(weight, torch.fx.Node):
        return None
    return parameter(weight.args[scales_at], graph)


def inputs_of(node: torch.fx.Node) -> Iterator[torch.fx.Node]:
    """The tensors a call reads, parameters excepted."""
    for name, value in arguments(node).items():
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, torch.fx.Node) and name not in {"weight", "bias"}:
                yield item


def activation_scales(node: torch.fx.Node) -> frozenset[float]:
    """The scales of the dequantizations before ``node`` and of the quantizations after it."""
    found = [item.args[1] for item in inputs_of(node) if _schema_name(item) == _PER_TENSOR]
    for user in node.users:
        readers = user.users if operation(user) == "relu" else (user,)
        found += [reader.args[1] for reader in readers if _schema_name(reader) == _QUANTIZE]
    return frozenset(float(scale) for scale in found)


def module_of(node: torch.fx.Node) -> tuple[str, str]:
    """Path and class name of the innermost module that made the call; ("", "") if unknown."""
    stack = list(node.meta.get("nn_module_stack", {}).values())
    if not stack:
        return "", ""
    path, kind = stack[-1]
    name = kind if isinstance(kind, str) else kind.__qualname__
    return path, name.rsplit(".", 1)[-1]
