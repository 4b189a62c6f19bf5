"""MobileNetV2 1.0 with random weights, in plain torch.nn, as its paper's table 2 lists it."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["MobileNetV2"]

# Expansion, output channels, repetitions, stride of the first repetition.
_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def _convolution(
    in_channels: int, out_channels: int, kernel: int = 1, *, stride: int = 1, groups: int = 1
) -> list[nn.Module]:
    return [
        nn.Conv2d(
            in_channels,
            out_channels,
            kernel,
            stride=stride,
            padding=kernel // 2,
            groups=groups,
            bias=False,
        ),
        nn.BatchNorm2d(out_channels),
    ]


class _Block(nn.Module):
    """Expand, depthwise, project; the input is added where the shapes allow it."""

    def __init__(self, in_channels: int, out_channels: int, expansion: int, stride: int) -> None:
        super().__init__()
        hidden = in_channels * expansion
        expand = [*_convolution(in_channels, hidden), nn.ReLU6()] if expansion > 1 else []
        depthwise = [*_convolution(hidden, hidden, 3, stride=stride, groups=hidden), nn.ReLU6()]
        self.layers = nn.Sequential(*expand, *depthwise, *_convolution(hidden, out_channels))
        self.adds_input = stride == 1 and in_channels == out_channels

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x) if self.adds_input else self.layers(x)


class MobileNetV2(nn.Module):
    """Logits [n, 1000] from images [n, 3, 224, 224]."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [*_convolution(3, 32, 3, stride=2), nn.ReLU6()]
        channels = 32
        for expansion, out_channels, repetitions, stride in _STAGES:
            for repetition in range(repetitions):
                first = stride if repetition == 0 else 1
                layers.append(_Block(channels, out_channels, expansion, first))
                channels = out_channels
        self.features = nn.Sequential(*layers, *_convolution(channels, 1280), nn.ReLU6())
        self.classifier = nn.Linear(1280, 1000)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits of ``images``."""
        return self.classifier(self.features(images).mean((2, 3)))
