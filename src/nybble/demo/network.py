"""The demo's network: a small separable convolutional network for 8 × 8 digits (needs torch)."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["DigitNetwork"]


def _convolution(
    in_channels: int, out_channels: int, kernel: int, *, groups: int = 1
) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(
            in_channels, out_channels, kernel, padding=kernel // 2, groups=groups, bias=False
        ),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(),
    )


class DigitNetwork(nn.Module):
    """Ten logits [n, 10] from grey images [n, 1, 8, 8] with values 0 to 16."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = _convolution(1, 16, 3)
        self.first = nn.Sequential(
            _convolution(16, 16, 3, groups=16), _convolution(16, 32, 1), nn.MaxPool2d(2)
        )
        self.second = nn.Sequential(_convolution(32, 32, 3, groups=32), _convolution(32, 32, 1))
        self.head = nn.Sequential(nn.Linear(32 * 4 * 4, 32), nn.ReLU(), nn.Linear(32, 10))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits of ``images``."""
        features = self.first(self.stem(images))
        features = features + self.second(features)
        return self.head(features.flatten(1))
