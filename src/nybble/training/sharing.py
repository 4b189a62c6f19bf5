"""Weights that the exporter stored once: what is stored once is trained once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nybble.errors import ContractError
from nybble.graph import Graph, Value

from .layers import QuantizedLayer

__all__ = ["refuse_frozen_sharers", "refuse_merging_shared", "with_stored_codes_once"]


def with_stored_codes_once(graph: Graph) -> Graph:
    """The graph in which all reads of the same stored codes are reads of one value.

    A program names equal constants by their digest, and so holds one copy of tied weights.
    """
    known: dict[tuple[int, tuple[int, ...]], Value] = {}
    same: dict[Value, Value] = {}
    for value in graph.users():
        if value.constant is not None and value.dtype.name == "uint8" and value.constant.size:
            address = int(value.constant.__array_interface__["data"][0])
            first = known.setdefault((address, value.shape), value)
            if first is not value:
                same[value] = first
    return graph.substitute(same)


def refuse_frozen_sharers(graph: Graph, layers: Sequence[QuantizedLayer]) -> None:
    """Training ``layers`` must not change what other calls read.

    Raises:
        ContractError: a call that is not trained, such as an embedding tied to the last layer,
            reads a trained weight; or two layers read one with different scales.
    """
    users = graph.users()
    by_call = {layer.call: layer for layer in layers}
    for layer in layers:
        for call in users[layer.weight]:
            if call not in by_call:
                others = [other.name for other in layers if other.weight is not layer.weight]
                advice = f"train other layers (trainable={others}), or " if others else ""
                raise ContractError(
                    f"{layer.name} shares its stored weight with {call.operator.name} "
                    f"({call.origin}), which is not trained and would change with it; "
                    f'{advice}use mode="adapter"'
                )
            if not _same_scales(layer, by_call[call]):
                raise ContractError(
                    f"{layer.name} and {by_call[call].name} share one stored weight under "
                    "different scales, so they cannot be trained together; use "
                    'mode="adapter", or export the program with different weights'
                )


def _same_scales(one: QuantizedLayer, other: QuantizedLayer) -> bool:
    return one.group_size == other.group_size and np.array_equal(one.scales, other.scales)


def refuse_merging_shared(graph: Graph, layers: Sequence[QuantizedLayer]) -> None:
    """An adapter belongs to one call, and can be merged only into a weight of that call alone.

    Raises:
        ContractError: another call reads the weight of one of ``layers``.
    """
    users = graph.users()
    for layer in layers:
        for call in users[layer.weight]:
            if call is not layer.call:
                raise ContractError(
                    f"the adapter of {layer.name} cannot be merged: {call.operator.name} "
                    f"({call.origin}) reads the same stored weight and would change with it. "
                    "Save the adapters to a .safetensors file, or leave the layer out of trainable"
                )
