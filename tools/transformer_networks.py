"""Networks with 4-bit layers for the fixtures: perceptron, transformers, attention with a cache."""

from __future__ import annotations

import executorch.backends.vulkan.custom_ops_lib  # noqa: F401  (defines torch.ops.et_vk)
import torch
from executorch.extension.llm.custom_ops import custom_ops  # noqa: F401  (torch.ops.llama)
from torch import nn
from torch.nn import functional

__all__ = ["CachedAttention", "Perceptron", "RotaryTransformer", "Transformer"]


class Perceptron(nn.Module):
    """Two linear layers, the second padded to a multiple of 4 outputs that are cut off again."""

    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs
        self.first = nn.Linear(inputs, hidden)
        self.second = nn.Linear(hidden, -(-outputs // 4) * 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))[..., : self.outputs]


class _Attention(nn.Module):
    """Causal attention written out: products, a mask, a softmax."""

    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        self.register_buffer("mask", torch.full((length, length), -1e9).triu(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        split = (*x.shape[:2], self.heads, -1)
        query, key, value = (
            layer(x).view(split).transpose(1, 2) for layer in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5 + self.mask
        attended = scores.softmax(-1) @ value
        return self.out(attended.transpose(1, 2).reshape(x.shape))


class _Block(nn.Module):
    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = _Attention(width, heads, length)
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.down(functional.gelu(self.up(self.norm(x))))


class Transformer(nn.Module):
    """A decoder with learned positions: logits [batch, length, tokens] of token numbers."""

    def __init__(self, tokens: int, width: int, heads: int, length: int, layers: int = 2) -> None:
        super().__init__()
        self.tokens = nn.Embedding(tokens, width)
        self.positions = nn.Parameter(0.1 * torch.randn(length, width))
        self.blocks = nn.Sequential(*(_Block(width, heads, length) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, tokens, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.blocks(self.tokens(tokens) + self.positions)))


def _rotation(length: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    frequencies = 10_000.0 ** (-torch.arange(0, width, 2) / width)
    angles = torch.outer(torch.arange(length).float(), frequencies)
    return angles.cos(), angles.sin()


class _RotaryBlock(nn.Module):
    """Root-mean-square norms, rotary positions, et_vk.sdpa, and a gated silu."""

    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = _RootMeanSquareNorm(width)
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.norm = _RootMeanSquareNorm(width)
        self.gate = nn.Linear(width, 2 * width, bias=False)
        self.up = nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)
        cosines, sines = _rotation(length, width // heads)
        self.register_buffer("cosines", cosines)
        self.register_buffer("sines", sines)
        mask = torch.full((length, length), -1e9).triu(1)
        self.register_buffer("mask", mask.view(1, 1, length, length))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normed = self.attention_norm(x)
        split = (*x.shape[:2], self.heads, -1)
        query, key, value = (
            layer(normed).view(split) for layer in (self.query, self.key, self.value)
        )
        query, key = torch.ops.et_vk.apply_rotary_emb(query, key, self.cosines, self.sines)
        query, key, value = (part.transpose(1, 2) for part in (query, key, value))
        mask = self.mask.expand(x.shape[0], self.heads, -1, -1)
        attended = torch.ops.et_vk.sdpa(query, key, value, mask, None)
        x = x + self.out(attended.transpose(1, 2).reshape(x.shape))
        normed = self.norm(x)
        return x + self.down(functional.silu(self.gate(normed)) * self.up(normed))


class _RootMeanSquareNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(1 + 0.2 * torch.randn(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * self.weight


class RotaryTransformer(nn.Module):
    """A decoder in the manner of Llama: logits [batch, length, tokens] of token numbers."""

    def __init__(self, tokens: int, width: int, heads: int, length: int, layers: int = 2) -> None:
        super().__init__()
        self.tokens = nn.Embedding(tokens, width)
        self.blocks = nn.Sequential(*(_RotaryBlock(width, heads, length) for _ in range(layers)))
        self.norm = _RootMeanSquareNorm(width)
        self.head = nn.Linear(width, tokens, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.blocks(self.tokens(tokens))))


class CachedAttention(nn.Module):
    """Attention of new rows x [1, new, width] to all rows so far, kept in buffers.

    ``start`` [1] int64 counts the rows before; key and value heads are shared by query heads.
    """

    def __init__(self, width: int, heads: int, shared_heads: int, length: int) -> None:
        super().__init__()
        self.heads = heads
        self.shared_heads = shared_heads
        head_width = width // heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, shared_heads * head_width)
        self.value = nn.Linear(width, shared_heads * head_width)
        self.out = nn.Linear(width, width)
        cache = torch.zeros(1, length, shared_heads, head_width)
        self.register_buffer("key_cache", cache)
        self.register_buffer("value_cache", cache.clone())

    def forward(self, x: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
        length = x.shape[1]
        position = start[0].item()
        torch._check_is_size(position)
        torch._check(position + length <= self.key_cache.shape[1])
        query = self.query(x).view(1, length, self.heads, -1)
        key = self.key(x).view(1, length, self.shared_heads, -1)
        value = self.value(x).view(1, length, self.shared_heads, -1)
        torch.ops.llama.update_cache(key, self.key_cache, position)
        torch.ops.llama.update_cache(value, self.value_cache, position)
        attended = torch.ops.llama.custom_sdpa(
            query, self.key_cache, self.value_cache, position, None, 0.0, True
        )
        return self.out(attended.reshape(x.shape))
