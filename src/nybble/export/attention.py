"""Keeps torch's scaled dot product attention whole: the exporter would take it apart."""

from __future__ import annotations

from typing import Any

import executorch.backends.vulkan.custom_ops_lib  # noqa: F401  (defines torch.ops.et_vk)
import torch

from nybble.export.nodes import arguments, operation

__all__ = ["use_fused_attention"]


def use_fused_attention(graph: torch.fx.GraphModule) -> None:
    """Put ``et_vk.sdpa`` in the place of attention calls that it computes; others stay.

    It takes [batch, heads, rows, width] of fixed shape, no dropout, as many key as query heads,
    and a float mask, or causal attention, whose mask becomes a constant.
    """
    for node in list(graph.graph.nodes):
        if operation(node) == "scaled_dot_product_attention":
            given = arguments(node)
            if _is_covered(given):
                _replace(graph, node, given)
    graph.graph.lint()
    graph.recompile()


def _is_covered(given: dict[str, Any]) -> bool:
    query, key, value = (given[name].meta["val"] for name in ("query", "key", "value"))
    fixed = all(isinstance(size, int) for tensor in (query, key, value) for size in tensor.shape)
    if not fixed or query.ndim != 4 or query.dtype != torch.float32:
        return False
    if given["dropout_p"] or query.shape[:2] != key.shape[:2] or key.shape != value.shape:
        return False
    mask = given["attn_mask"]
    return mask is None or mask.meta["val"].dtype == torch.float32


def _replace(graph: torch.fx.GraphModule, node: torch.fx.Node, given: dict[str, Any]) -> None:
    query, key, value = (given[name] for name in ("query", "key", "value"))
    rows, columns = query.meta["val"].shape[-2], key.meta["val"].shape[-2]
    with graph.graph.inserting_before(node):
        mask = given["attn_mask"]
        if given["is_causal"]:
            mask = _causal_mask(graph, rows, columns)
        if mask is not None:
            # The ExecuTorch runtimes read the mask without broadcasting.
            shape = [*query.meta["val"].shape[:2], rows, columns]
            mask = graph.graph.call_function(torch.ops.aten.expand.default, (mask, shape))
        fused = graph.graph.call_function(
            torch.ops.et_vk.sdpa.default, (query, key, value, mask, given["scale"])
        )
    fused.meta = dict(node.meta)
    node.replace_all_uses_with(fused)
    graph.graph.erase_node(node)


def _causal_mask(graph: torch.fx.GraphModule, rows: int, columns: int) -> torch.fx.Node:
    name = f"causal_mask_{rows}_{columns}"
    if not hasattr(graph, name):
        # A finite number: rows of infinities alone would make NaN of exp(-inf + inf).
        mask = torch.full((rows, columns), torch.finfo(torch.float32).min / 2)
        graph.register_buffer(name, mask.triu(1), persistent=False)
    return graph.graph.get_attr(name)
