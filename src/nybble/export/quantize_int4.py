"""Weight quantization to int4 codes in groups, by torchao, in the forms that the exporter knows."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping

import torch
from torch import nn
from torchao.quantization import (
    Int8DynamicActivationIntxWeightConfig,
    IntxWeightOnlyConfig,
    PerAxis,
    PerGroup,
    quantize_,
)

from nybble.export.quiet import quiet

__all__ = ["modules_kept_float", "quantize_int4"]

# What the exporter's patterns ask for, and what its padding of scales can stand.
_FEATURE_MULTIPLE = 4
_EMBEDDING_MULTIPLE = 32


def modules_kept_float(module: nn.Module, group_size: int | None) -> dict[str, str]:
    """Linear and embedding layers whose 4-bit form the exporter would refuse, with the reason."""
    reasons = {}
    for path, layer in _weighted(module):
        reason = _refusal(layer, group_size)
        if reason is not None:
            reasons[path] = reason
    return reasons


def quantize_int4(
    module: nn.Module,
    group_size: int | None,
    *,
    dynamic: bool = False,
    keep_float: Mapping[str, str],
) -> nn.Module:
    """A copy of ``module`` with int4 weights in its linear and embedding layers.

    ``group_size`` input features (embedding columns) share a scale; None gives one scale a row.
    ``dynamic`` quantizes the inputs of linear layers to int8 as well, with a scale and a zero
    point for each row found at run time. Layers named in ``keep_float`` stay as they are.
    """
    granularity = PerAxis(0) if group_size is None else PerGroup(group_size)
    weights = IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=granularity)
    linear = weights
    if dynamic:
        linear = Int8DynamicActivationIntxWeightConfig(
            weight_dtype=torch.int4, weight_granularity=granularity
        )
    quantized = copy.deepcopy(module)
    with quiet():
        for kind, config in ((nn.Linear, linear), (nn.Embedding, weights)):
            quantize_(
                quantized,
                config,
                filter_fn=lambda layer, path, kind=kind: (
                    isinstance(layer, kind) and path not in keep_float
                ),
            )
    return quantized


def _weighted(module: nn.Module) -> Iterator[tuple[str, nn.Linear | nn.Embedding]]:
    for path, layer in module.named_modules():
        if isinstance(layer, (nn.Linear, nn.Embedding)):
            yield path, layer


def _refusal(layer: nn.Linear | nn.Embedding, group_size: int | None) -> str | None:
    if isinstance(layer, nn.modules.linear.NonDynamicallyQuantizableLinear):
        return "MultiheadAttention reads its weight without calling it"
    rows, columns = layer.weight.shape
    if layer.weight.dtype != torch.float32:
        return f"its weight has dtype {layer.weight.dtype}, and float32 is expected"
    embedding = isinstance(layer, nn.Embedding)
    columns_name = "embedding columns" if embedding else "input features"
    if group_size is not None and columns % group_size:
        return (
            f"its {columns} {columns_name} do not fill groups of {group_size}; choose a "
            "group_size that divides them"
        )
    if embedding:
        if columns % _EMBEDDING_MULTIPLE:
            return (
                "the exporter's 4-bit embedding needs columns in multiples of "
                f"{_EMBEDDING_MULTIPLE}, received {columns}"
            )
        return None
    for name, size in (("input", columns), ("output", rows)):
        if size % _FEATURE_MULTIPLE:
            return (
                f"the exporter's 4-bit linear needs {name} features in multiples of "
                f"{_FEATURE_MULTIPLE}, received {size}"
            )
    return None
