"""From trained states to the constants of a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nybble.contract import Array
from nybble.ops.linear_q4.layout import codes_of_bytes
from nybble.ops.linear_q4.reference import weight_codes

from .adapter import Adapter
from .layers import QuantizedLayer
from .rewrite import Replacement

__all__ = ["merged_codes", "replacements"]


def merged_codes(adapter: Adapter, codes: Array, down: Array, up: Array) -> Array:
    """A layer's codes with its adapter rounded into them."""
    layer = adapter.layer
    values = adapter.merged(layer.values(codes), down, up)
    return weight_codes(values, layer.scales, layer.group_size)


def replacements(
    layers: Sequence[QuantizedLayer], changed: Mapping[str, Array]
) -> list[Replacement]:
    """What to write into the program for layers whose codes are ``changed`` now."""
    items = []
    for layer in layers:
        codes = _with_padding_kept(layer, changed[layer.name])
        items.append(Replacement(layer.name, layer.codes, codes))
        sums = layer.call.arguments.get("weight_sums")
        if sums is not None and sums.constant is not None:
            items.append(Replacement(layer.name, sums.constant, _sums(layer, codes, sums.constant)))
    return items


def _with_padding_kept(layer: QuantizedLayer, codes: Array) -> Array:
    """``codes`` with the nibbles of padding columns as the program holds them."""
    _, k = layer.features
    low = np.arange(0, layer.columns, 2) < k
    high = np.arange(1, layer.columns, 2) < k
    mask = (np.where(low, 0x0F, 0) | np.where(high, 0xF0, 0)).astype(np.uint8)
    return (codes & mask) | (layer.codes & ~mask)


def _sums(layer: QuantizedLayer, codes: Array, stored: Array) -> Array:
    """Sums of each group's steps, int32 ``[parts, n]`` in the stored shape, padding kept."""
    n, k = layer.features
    steps = codes_of_bytes(codes, k).astype(np.int32) - 8
    result = stored.copy()
    for part in range(-(-k // layer.group_size)):
        columns = slice(part * layer.group_size, (part + 1) * layer.group_size)
        result[part, :n] = steps[:, columns].sum(1)
    return result
