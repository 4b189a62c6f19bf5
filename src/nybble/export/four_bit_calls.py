"""Writes calls of 4-bit linear layers so that the stock exporter reads them right."""

from __future__ import annotations

import copy
from typing import Any

import torch

from nybble.errors import NybbleError
from nybble.export.nodes import (
    arguments,
    is_dequantize,
    is_int4,
    module_of,
    operation,
    parameter,
)

__all__ = ["prepare_four_bit_calls"]

_NEVER_VIEWS = frozenset(
    {"add", "div", "gelu", "layer_norm", "linear", "mul", "relu", "sigmoid", "silu", "sub", "tanh"}
)
"""Operations of which no view is left at the end when the exporter has taken them apart."""


def prepare_four_bit_calls(graph: torch.fx.GraphModule) -> None:
    """Change the graph in place where the exporter would misread it; what it computes stays.

    Raises:
        NybbleError: a layer with int8 inputs is given a vector, in which the exporter finds no row.
    """
    weights: set[torch.fx.Node] = set()
    for node in list(graph.graph.nodes):
        if operation(node) == "linear" and is_int4(node):
            _refuse_quantized_vector(node)
            _read_copy_of_repeated_weight(graph, node, weights)
            _keep_view_apart(graph, node)
    graph.graph.lint()
    graph.recompile()


def _refuse_quantized_vector(node: torch.fx.Node) -> None:
    given = arguments(node)["input"]
    if is_dequantize(given) and node.meta["val"].ndim == 1:
        raise NybbleError(
            f"{module_of(node)[0] or node.name} (Linear) is given a vector, and the exporter's "
            "int8-dynamic form needs rows [rows, features]: export the module with a batch axis, "
            'or with quantize="int4".'
        )


def _read_copy_of_repeated_weight(
    graph: torch.fx.GraphModule, node: torch.fx.Node, weights: set[torch.fx.Node]
) -> None:
    """Each call reads a weight of its own: the exporter packs one in place for its first call.

    The file holds equal constants once all the same.
    """
    dequantize: Any = arguments(node)["weight"]
    # Codes and scales are parts of one stored tensor: what the first of them is taken from.
    source = arguments(dequantize)["input"].args[0]
    if source not in weights:
        weights.add(source)
        return
    name = f"{node.name}_weight"
    stored = parameter(source, graph)
    assert isinstance(stored, torch.nn.Parameter)
    graph.register_parameter(name, copy.deepcopy(stored))
    with graph.graph.inserting_before(dequantize):
        again = graph.graph.get_attr(name)
        again.meta = dict(source.meta)
        parts = {}
        for part in (argument for argument in dequantize.args if _is_part_of(argument, source)):
            parts[part] = graph.graph.call_function(part.target, (again, *part.args[1:]))
            parts[part].meta = dict(part.meta)
    dequantize.args = tuple(
        parts[argument] if _is_part_of(argument, source) else argument
        for argument in dequantize.args
    )


def _is_part_of(argument: object, source: torch.fx.Node) -> bool:
    return isinstance(argument, torch.fx.Node) and argument.args[:1] == (source,)


def _keep_view_apart(graph: torch.fx.GraphModule, node: torch.fx.Node) -> None:
    """Put the layer between unsqueeze and squeeze where its input may be a view.

    The exporter takes a view before a product for one of its own making, and reads past it: a
    layer behind flatten would multiply what was not flattened yet.
    """
    given = arguments(node)["input"]
    if node.meta["val"].ndim != 2 or is_dequantize(given):
        return
    if given.op == "placeholder" or operation(given) in _NEVER_VIEWS:
        return
    with graph.graph.inserting_before(node):
        rows = graph.graph.call_function(torch.ops.aten.unsqueeze.default, (given, 0))
    rows.meta = {**node.meta, "val": given.meta["val"].unsqueeze(0)}
    with graph.graph.inserting_after(node):
        result = graph.graph.call_function(torch.ops.aten.squeeze.dims, (node, [0]))
    result.meta = dict(node.meta)
    node.replace_all_uses_with(result, delete_user_cb=lambda user: user is not result)
    node.replace_input_with(given, rows)
    node.meta = {**node.meta, "val": node.meta["val"].unsqueeze(0)}
