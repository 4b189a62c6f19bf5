"""The 4-bit linear layers of a graph, and which of them a glob selects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from nybble.contract import Array
from nybble.errors import ContractError
from nybble.graph import Call, Graph, Value
from nybble.ops.linear_q4.layout import codes_of_bytes
from nybble.words import counted

__all__ = ["OPERATORS", "QuantizedLayer", "find_layers", "select_layers"]

OPERATORS = ("et_vk.linear_q4gsw.default", "et_vk.linear_dq8ca_q4gsw.default")
"""Linear layers whose 4-bit codes can be trained."""

_OTHER_LINEAR = ("aten.linear.", "aten.addmm.", "aten.mm.", "linear_q8", "q8ta_linear", "qcs4w")


@dataclass(frozen=True, eq=False)
class QuantizedLayer:
    """A 4-bit linear layer of a program: its name there and its call."""

    name: str
    call: Call

    @property
    def weight(self) -> Value:
        """The codes, uint8 ``[n, row_bytes]``, two a byte, the low nibble first."""
        value: Value = self.call.arguments["weight"]
        return value

    @property
    def codes(self) -> Array:
        """The codes that the program holds."""
        assert self.weight.constant is not None
        return self.weight.constant

    @property
    def features(self) -> tuple[int, int]:
        """Output and input features, n and k."""
        return self.weight.shape[0], int(self.call.arguments["x"].shape[-1])

    @property
    def columns(self) -> int:
        """Columns of codes a row, padding included."""
        return 2 * self.weight.shape[1]

    @property
    def group_size(self) -> int:
        """Input features that share a scale."""
        return int(self.call.arguments["group_size"])

    @property
    def scales(self) -> Array:
        """float32 ``[parts, n]``; columns of padding have scale 0."""
        stored = self.call.arguments["scales"].constant
        n, k = self.features
        used = -(-k // self.group_size)
        parts = -(-self.columns // self.group_size)
        scales = np.zeros((max(parts, used), n), np.float32)
        scales[:used] = stored[:used, :n]
        return scales

    @property
    def requant_scales(self) -> Value | Array:
        """The program's own scales where no column is padding, so that they are kept once."""
        if self.columns == self.features[1]:
            value: Value = self.call.arguments["scales"]
            return value
        return self.scales

    def values(self, codes: Array) -> Array:
        """The float weight that ``codes`` stand for, float32 ``[n, columns]``, 0 in padding."""
        _, k = self.features
        groups = np.arange(self.columns) // self.group_size
        steps = codes_of_bytes(codes, self.columns).astype(np.float32) - np.float32(8)
        steps[:, k:] = 0
        return steps * self.scales[groups].T

    def __str__(self) -> str:
        n, k = self.features
        return f"{self.name} [{n}, {k}]"

    def __repr__(self) -> str:
        return str(self)


def find_layers(graph: Graph) -> tuple[QuantizedLayer, ...]:
    """The layers with constant codes and scales, named ``METHOD.linear_I`` in call order.

    Raises:
        ContractError: there is none.
    """
    found: list[QuantizedLayer] = []
    for call in graph.calls:
        if call.operator.name not in OPERATORS:
            continue
        constants = (call.arguments["weight"].constant, call.arguments["scales"].constant)
        if all(constant is not None for constant in constants):
            found.append(QuantizedLayer(f"{graph.name}.linear_{len(found)}", call))
    if not found:
        raise ContractError(
            f"method '{graph.name}' has no linear layer with constant 4-bit weights, so there is "
            f"nothing to train; {_what_instead(graph)}"
        )
    return tuple(found)


def _what_instead(graph: Graph) -> str:
    """What to do about a program without 4-bit linear layers, by what it has in their place."""
    names = [call.operator.name for call in graph.calls]
    linear = sum(any(part in name for part in _OTHER_LINEAR) for name in names)
    if linear:
        return (
            f"it has {counted(linear, 'linear call')} in float32 or int8. Those of Linear modules "
            'become 4-bit with quantize="int4" where group_size divides their input features and '
            "their output features are a multiple of 4; those inside an LSTM, a GRU or a "
            "MultiheadAttention do not. The report of nybble.export.export says which and why"
        )
    if any("embedding_q4gsw" in name for name in names):
        return "it has a 4-bit embedding, which stays frozen; add a linear layer to the module"
    return (
        "it has no linear layer at all, and convolutions and recurrent layers have no 4-bit form; "
        "add a linear layer to the module, or train before the export"
    )


def select_layers(
    layers: Sequence[QuantizedLayer], trainable: str | Sequence[str]
) -> tuple[QuantizedLayer, ...]:
    """The layers whose names match a glob, or one of several.

    Raises:
        ContractError: a glob matches nothing; the message lists the names.
    """
    globs = (trainable,) if isinstance(trainable, str) else tuple(trainable)
    for glob in globs:
        if not any(fnmatchcase(layer.name, glob) for layer in layers):
            raise ContractError(
                f"trainable {glob!r} matches none of the 4-bit linear layers: "
                f"{', '.join(map(str, layers))}"
            )
    chosen = tuple(
        layer for layer in layers if any(fnmatchcase(layer.name, glob) for glob in globs)
    )
    if not chosen:
        raise ContractError(f"trainable is empty; name some of {', '.join(map(str, layers))}")
    _refuse_half_shared(layers, chosen)
    return chosen


def _refuse_half_shared(layers: Sequence[QuantizedLayer], chosen: Sequence[QuantizedLayer]) -> None:
    trained = {layer.weight: layer.name for layer in chosen}
    for layer in layers:
        if layer.weight in trained and layer not in chosen:
            raise ContractError(
                f"{layer.name} shares its weight with {trained[layer.weight]}: train both or none"
            )
