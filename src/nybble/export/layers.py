"""Lists the layers of a captured graph: what may become int8, and how to know it in the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from nybble.export.nodes import (
    WEIGHTED,
    activation_scales,
    arguments,
    inputs_of,
    is_dequantize,
    module_of,
    operation,
    parameter,
    weight_scales,
)
from nybble.export.refusals import INT8_FORMS, refusal_after, refusal_ahead

__all__ = ["Layer", "find_layers", "layers_kept_float"]

# What XNNPACKQuantizer annotates beside the operations with weights.
_ANNOTATED = frozenset({"add", "adaptive_avg_pool2d", "cat", "mul"})


@dataclass(frozen=True)
class Layer:
    """One layer of a captured graph.

    A call of the file is this layer if it carries the constant ``mark`` (the weight's scales, or
    the float weight) and every number of ``scales`` (those of its input and output codes).
    ``refusal`` is the reason to report if the file holds it as float; None if float was asked for.
    """

    path: str
    kind: str
    operation: str
    mark: NDArray[np.float32] | None
    scales: frozenset[float]
    quantized: bool
    refusal: str | None

    @property
    def has_int8_form(self) -> bool:
        """Whether VulkanBackend has an int8 operator for this operation."""
        return self.operation in INT8_FORMS


def layers_kept_float(graph: torch.fx.GraphModule) -> dict[str, str]:
    """Nodes of a captured graph that the exporter cannot take quantized, each with the reason."""
    reasons = {}
    for node in graph.graph.nodes:
        reason = refusal_ahead(node, graph)
        if reason is not None:
            reasons[node.name] = reason
    return reasons


def find_layers(
    graph: torch.fx.GraphModule, kept_float: Mapping[str, str] | None
) -> tuple[Layer, ...]:
    """The layers with weights, and other calls that the quantizer annotated, in call order.

    ``kept_float`` is what :func:`layers_kept_float` said; None when nothing was to be quantized.
    """
    layers = []
    for node in graph.graph.nodes:
        name = operation(node)
        if name not in WEIGHTED | _ANNOTATED:
            continue
        quantized = _is_quantized(node)
        if not (quantized or name in WEIGHTED):
            continue
        refusal = None
        if kept_float is not None:
            refusal = kept_float.get(node.name) or refusal_after(node, graph)
        path, kind = module_of(node)
        if name not in WEIGHTED:
            path, kind = f"{path}.{node.name}".lstrip("."), name
        scales = activation_scales(node)
        mark = _mark(node, graph)
        layers.append(Layer(path or node.name, kind, name, mark, scales, quantized, refusal))
    return tuple(layers)


def _is_quantized(node: torch.fx.Node) -> bool:
    sources = list(inputs_of(node))
    weight = arguments(node).get("weight")
    if weight is not None:
        sources.append(weight)
    return bool(sources) and all(is_dequantize(source) for source in sources)


def _mark(node: torch.fx.Node, graph: torch.fx.GraphModule) -> NDArray[np.float32] | None:
    weight = arguments(node).get("weight")
    if weight is None:
        return None
    tensor = weight_scales(weight, graph)
    if tensor is None:
        tensor = parameter(weight, graph)
    if tensor is None:
        return None
    values: NDArray[np.float32] = tensor.detach().to(torch.float32).numpy()
    return values
