"""Trains a small character-level transformer in float32 and exports it with 4-bit weights.

Run ``python examples/make_character_model.py`` (needs nybble[export]); it writes
``character.pte`` beside this file. The text to learn from is Python's own reference, which every
Python carries (``pydoc_data.topics``), or any file given with ``--text``.
"""

from __future__ import annotations

import argparse
import pydoc_data.topics
from pathlib import Path

import numpy as np
import torch
from rich.progress import track
from torch import nn
from torch.nn import functional

from characters import ALPHABET, encode, windows
from nybble.export import export

WIDTH, HEADS, LAYERS = 128, 4, 2
LENGTH, BATCH = 64, 16
STEPS = 2500
LEARNING_RATE = 2e-3
SEED = 0


class Attention(nn.Module):
    """Causal attention of each character to those before it."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.value = nn.Linear(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Rows [batch, length, width] from rows of that shape."""
        split = (*x.shape[:2], HEADS, -1)
        query, key, value = (
            layer(x).view(split).transpose(1, 2) for layer in (self.query, self.key, self.value)
        )
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(attended.transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    """Attention and a perceptron, each added to what it reads."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Rows [batch, length, width] from rows of that shape."""
        x = x + self.attention(self.attention_norm(x))
        return x + self.down(functional.gelu(self.up(self.norm(x))))


class CharacterModel(nn.Module):
    """Logits [batch, length, characters] of the character after each of ``tokens``."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(len(ALPHABET), WIDTH)
        self.positions = nn.Parameter(0.02 * torch.randn(LENGTH, WIDTH))
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, len(ALPHABET), bias=False)
        nn.init.normal_(self.tokens.weight, std=0.1)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits of ``tokens`` [batch, length]."""
        return self.head(self.norm(self.blocks(self.tokens(tokens) + self.positions)))


def train(tokens: np.ndarray, steps: int) -> CharacterModel:
    """A model trained on random windows of a text, in evaluation mode."""
    torch.manual_seed(SEED)
    generator = np.random.default_rng(SEED)
    model = CharacterModel()
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=steps)
    for step in track(range(steps), "training"):
        inputs, labels = (
            torch.from_numpy(part) for part in windows(tokens, BATCH, LENGTH, generator)
        )
        logits = model(inputs)
        loss = functional.cross_entropy(logits.flatten(0, 1), labels.flatten().long())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 250 == 0 or step == steps - 1:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
    return model.eval()


def main() -> None:
    """Train and export; say what became of each layer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("character.pte"))
    arguments = parser.parse_args()
    text = "\n".join(pydoc_data.topics.topics.values())
    if arguments.text is not None:
        text = arguments.text.read_text(encoding="utf-8")
    model = train(encode(text), arguments.steps)
    example = torch.zeros(BATCH, LENGTH, dtype=torch.int64)
    print(export(model, example, arguments.out, quantize="int4", group_size=32))


if __name__ == "__main__":
    main()
