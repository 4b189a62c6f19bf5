"""The small networks behind ``tests/fixtures``: one per thing that a program can contain."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

__all__ = [
    "AddBroadcast",
    "FloatCnn",
    "FloatReductions",
    "Interrupted",
    "InvertedResidual",
    "LinearHead",
    "ReluBetween",
    "ResidualAdd",
    "SmallCnn",
]


class ResidualAdd(nn.Module):
    """Two convolutions whose outputs are added, with or without a relu after the sum."""

    def __init__(self, channels: int, *, relu: bool) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 1)
        self.relu = nn.ReLU() if relu else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        return self.relu(x + self.second(x))


class InvertedResidual(nn.Module):
    """MobileNetV2's block: expand, depthwise, project, add the input."""

    def __init__(self, channels: int, expansion: int) -> None:
        super().__init__()
        hidden = channels * expansion
        self.expand = nn.Sequential(
            nn.Conv2d(channels, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6()
        )
        self.depthwise = nn.Sequential(
            nn.Conv2d(hidden, hidden, 3, padding=1, groups=hidden, bias=False),
            nn.BatchNorm2d(hidden),
            nn.ReLU6(),
        )
        self.project = nn.Sequential(
            nn.Conv2d(hidden, channels, 1, bias=False), nn.BatchNorm2d(channels)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.project(self.depthwise(self.expand(x)))


class SmallCnn(nn.Module):
    """Convolution, maximum pool, convolution, global average, linear."""

    def __init__(self, *, adaptive: bool) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.body = nn.Sequential(nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU())
        self.pool = nn.AdaptiveAvgPool2d(1) if adaptive else None
        self.head = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.body(self.stem(x))
        pooled = x.mean((2, 3)) if self.pool is None else self.pool(x).flatten(1)
        return self.head(pooled)


class FloatCnn(nn.Module):
    """A float network that touches every float operator with weights, and the shape operators."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 6, 3, padding=1)
        self.second = nn.Conv2d(6, 6, (3, 1), stride=(2, 1), groups=3)
        self.up = nn.ConvTranspose2d(6, 4, 2, stride=2)
        self.head = nn.Linear(32, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(x))
        x = nn.functional.avg_pool2d(x, 3, stride=2, padding=1)
        x = self.second(x)
        x = nn.functional.max_pool2d(x, (1, 2))
        x = nn.functional.hardtanh(self.up(x), -0.75, 0.5)
        x = x.permute(0, 2, 3, 1).reshape(len(x), -1, 32)
        return self.head(x)


class FloatReductions(nn.Module):
    """Elementwise arithmetic with broadcasting, sums and means over various axes, squeezes."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        total = x + y
        scaled = torch.clamp(total * x - 0.5 * y, min=-1.5)
        by_row = scaled.sum(-1, keepdim=True) + scaled.mean(-1, keepdim=True)
        by_channel = scaled.mean((-2, -1), keepdim=True).squeeze(-1).squeeze(-1)
        return torch.sub(scaled, by_row, alpha=2.0), by_channel.unsqueeze(1)


class LinearHead(nn.Module):
    """Two linear layers with a relu between."""

    def __init__(self, sizes: tuple[int, int, int]) -> None:
        super().__init__()
        self.first = nn.Linear(sizes[0], sizes[1])
        self.second = nn.Linear(sizes[1], sizes[2])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


class Interrupted(nn.Module):
    """Two convolutions with an operator between them that VulkanPartitioner refuses."""

    def __init__(self, refused: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.before = nn.Conv2d(4, 8, 3, padding=1)
        self.after = nn.Conv2d(8, 4, 1)
        self.refused = refused

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.after(self.refused(torch.relu(self.before(x))))


class ReluBetween(nn.Module):
    """A relu that cannot join the convolution before it, whose output has a second reader."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        return x + self.second(torch.relu(x))


class AddBroadcast(nn.Module):
    """A quantized sum of tensors of different shapes, which the exporter takes as q8ta_add."""

    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Conv2d(4, 4, 1)
        self.bias = nn.Conv2d(4, 4, 1)

    def forward(self, image: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return self.image(image) + self.bias(bias)
