"""Low-rank adapters: beside a frozen 4-bit layer, y + alpha / rank * (x @ down.T) @ up.T."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nybble.contract import Array
from nybble.errors import ContractError
from nybble.graph import GraphBuilder, Value

from .layers import QuantizedLayer

__all__ = ["Adapter", "adapter_config", "adapter_tensors", "new_adapters"]

_PREFIX = "base_model.model."


@dataclass(frozen=True, eq=False)
class Adapter:
    """Two factors: ``down`` float32 ``[rank, k]``, and ``up`` ``[n, rank]``, 0 at first."""

    layer: QuantizedLayer
    rank: int
    alpha: float
    down: Array
    up: Array

    @property
    def name(self) -> str:
        """The layer's name."""
        return self.layer.name

    @property
    def factor_names(self) -> tuple[str, str]:
        """Names of the factors' states: PEFT's, without its prefix."""
        return f"{self.name}.lora_A", f"{self.name}.lora_B"

    def add_states(self, b: GraphBuilder) -> tuple[Value, Value]:
        """The factors as states of a graph."""
        down, up = self.factor_names
        return b.state(down, self.down), b.state(up, self.up)

    def apply(self, b: GraphBuilder, x: Value, y: Value, down: Value, up: Value) -> Value:
        """``y``, the layer's result for ``x``, with the adapter's share added."""
        inner = b.call("aten.linear.default", x=x, weight=down)
        share = b.call("aten.linear.default", x=inner, weight=up)
        value: Value = b.call("aten.add.Tensor", x=y, other=share, alpha=self.alpha / self.rank)
        return value

    def merged(self, values: Array, down: Array, up: Array) -> Array:
        """The weight ``values`` ``[n, columns]`` with the adapter added."""
        n, k = self.layer.features
        result = values.copy()
        product = up.astype(np.float64) @ down.astype(np.float64)
        result[:n, :k] += (self.alpha / self.rank * product).astype(np.float32)
        return result


def new_adapters(
    layers: Sequence[QuantizedLayer], rank: int, alpha: float, rng: np.random.Generator
) -> tuple[Adapter, ...]:
    """An adapter for each layer, ``down`` drawn as PEFT draws it (Kaiming, uniform).

    Raises:
        ContractError: the rank is not positive.
    """
    if rank < 1:
        raise ContractError(f"rank: expected a positive integer, received {rank}")
    adapters = []
    for layer in layers:
        n, k = layer.features
        bound = 1 / math.sqrt(k)
        down = rng.uniform(-bound, bound, (rank, k)).astype(np.float32)
        adapters.append(Adapter(layer, rank, float(alpha), down, np.zeros((n, rank), np.float32)))
    return tuple(adapters)


def adapter_tensors(adapters: Sequence[Adapter], factors: Mapping[str, Array]) -> dict[str, Array]:
    """The factors under PEFT's keys."""
    return {
        f"{_PREFIX}{name}.weight": factors[name]
        for adapter in adapters
        for name in adapter.factor_names
    }


def adapter_config(adapters: Sequence[Adapter]) -> str:
    """The text of PEFT's ``adapter_config.json``."""
    first = adapters[0]
    config = {
        "peft_type": "LORA",
        "r": first.rank,
        "lora_alpha": first.alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "target_modules": [adapter.name for adapter in adapters],
        "task_type": None,
    }
    return json.dumps(config, indent=2)
