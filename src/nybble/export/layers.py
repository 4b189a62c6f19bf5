"""Lists the layers of a captured graph: their form, and how to know them in the file."""

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
    is_int4,
    module_of,
    operation,
    parameter,
    weight_scales,
)
from nybble.export.refusals import form_for, int4_refusal, refusal_after, refusal_ahead
from nybble.export.report import Form

__all__ = ["Layer", "find_layers", "layers_kept_float"]

# What XNNPACKQuantizer annotates beside the operations with weights.
_ANNOTATED = frozenset({"add", "adaptive_avg_pool2d", "cat", "mul"})


@dataclass(frozen=True)
class Layer:
    """One layer of a captured graph.

    A call of the file is this layer if it carries the constant ``mark`` (the weight's scales, or
    the float weight) and every number of ``scales`` (those of its input and output codes).
    ``wanted`` is the form asked for, if there is one for ``operation``, and ``refusal`` the reason
    to report if the file holds the layer as float; both are None if float was asked for.
    """

    path: str
    kind: str
    operation: str
    mark: NDArray[np.float32] | None
    scales: frozenset[float]
    quantized: bool
    wanted: Form | None
    refusal: str | None


def layers_kept_float(graph: torch.fx.GraphModule) -> dict[str, str]:
    """Nodes of a captured graph that the exporter cannot take quantized, each with the reason."""
    reasons = {}
    for node in graph.graph.nodes:
        reason = refusal_ahead(node, graph)
        if reason is not None:
            reasons[node.name] = reason
    return reasons


def find_layers(
    graph: torch.fx.GraphModule, asked: Form, kept_float: Mapping[str, str]
) -> tuple[Layer, ...]:
    """The layers with weights, and other calls that the quantizer annotated, in call order.

    ``kept_float`` gives the reasons of layers that were not to be quantized: by node as
    :func:`layers_kept_float` says for int8, by module path for the 4-bit forms.
    """
    layers = []
    for node in graph.graph.nodes:
        name = operation(node)
        if name not in WEIGHTED | _ANNOTATED:
            continue
        quantized = is_int4(node) or _is_quantized(node)
        if not (quantized or name in WEIGHTED):
            continue
        path, kind = module_of(node)
        wanted, refusal = None, None
        if asked != "float32":
            wanted = form_for(name, asked)
            after = refusal_after(node, graph) if asked == "int8" else int4_refusal(node)
            refusal = kept_float.get(node.name if asked == "int8" else path, after)
        if name not in WEIGHTED:
            path, kind = f"{path}.{node.name}".lstrip("."), name
        scales, mark = activation_scales(node), _mark(node, graph)
        path = path or node.name
        layers.append(Layer(path, kind, name, mark, scales, quantized, wanted, refusal))
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
