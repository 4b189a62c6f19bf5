"""Which attention calls of a module are kept whole on export."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from nybble.export.attention import use_fused_attention
from nybble.export.quantize import capture

pytestmark = pytest.mark.export


class Attention(nn.Module):
    """One call of torch's attention."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """What the rows of ``query`` gather from ``value``."""
        return functional.scaled_dot_product_attention(query, key, value, **self.options)


def fused(module: nn.Module, *inputs: torch.Tensor) -> tuple[int, torch.Tensor]:
    """How many et_vk.sdpa the captured module has afterwards, and its output."""
    graph = capture(module, inputs)
    use_fused_attention(graph)
    count = sum(node.target is torch.ops.et_vk.sdpa.default for node in graph.graph.nodes)
    return count, graph(*inputs)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"is_causal": True},
        {"scale": 0.3},
        {"attn_mask": torch.linspace(-2, 2, 35).view(5, 7)},
        {"attn_mask": torch.linspace(-2, 2, 70).view(2, 1, 5, 7)},
    ],
    ids=["plain", "causal", "scale", "mask", "mask of each batch"],
)
def test_attention_becomes_one_operator_with_the_same_outputs(options: dict[str, Any]) -> None:
    """Attention with no mask, a causal one or a float one is one et_vk.sdpa."""
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 3, rows, 8) for rows in (5, 7, 7))
    module = Attention(**options)
    count, output = fused(module, query, key, value)

    assert 1 == count
    torch.testing.assert_close(module(query, key, value), output)


@pytest.mark.parametrize(
    ("options", "heads"),
    [({"attn_mask": torch.ones(5, 7, dtype=torch.bool).tril()}, 4), ({"enable_gqa": True}, 2)],
    ids=["bool mask", "shared heads"],
)
def test_other_attention_is_left_to_the_exporter(options: dict[str, Any], heads: int) -> None:
    """A bool mask, and fewer key heads than query heads, are not what et_vk.sdpa computes."""
    query = torch.randn(2, 4, 5, 8)
    key, value = torch.randn(2, heads, 7, 8), torch.randn(2, heads, 7, 8)
    module = Attention(**options)
    count, output = fused(module, query, key, value)

    assert 0 == count
    torch.testing.assert_close(module(query, key, value), output)
