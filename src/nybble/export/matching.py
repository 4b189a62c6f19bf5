"""Finds each layer of a module among the calls of the file that was made from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nybble.export.file_calls import FileCall
from nybble.export.report import Form, LayerReport

if TYPE_CHECKING:
    from nybble.export.layers import Layer

__all__ = ["match_layers"]

_CONVOLUTIONS = ("aten.convolution.", "et_vk.conv_with_clamp.")
_LINEARS = ("aten.linear.", "aten.addmm.", "aten.mm.", "aten.bmm.")


def match_layers(layers: Sequence[Layer], calls: Sequence[FileCall]) -> tuple[LayerReport, ...]:
    """Report every layer with the operator that computes it in the file.

    Surest first: quantized calls by scales, float calls by weight, and what is left by order.
    """
    free = list(calls)
    found: dict[int, FileCall] = {}
    for matches in (_is_quantized_form, _is_float_form, _is_same_family):
        for index, layer in enumerate(layers):
            call = None if index in found else _take(free, layer, matches)
            if call is not None:
                found[index] = call
    return tuple(_report(layer, found.get(index)) for index, layer in enumerate(layers))


def _take(
    free: list[FileCall], layer: Layer, matches: Callable[[Layer, FileCall], bool]
) -> FileCall | None:
    for index, call in enumerate(free):
        if matches(layer, call):
            return free.pop(index)
    return None


def _report(layer: Layer, call: FileCall | None) -> LayerReport:
    form: Form = "float32" if call is None else call.form
    quantized = form != "float32"
    return LayerReport(
        path=layer.path,
        kind=layer.kind,
        operator=None if call is None else call.name,
        form=form,
        wanted=layer.wanted,
        reason=None if quantized else layer.refusal,
    )


def _is_quantized_form(layer: Layer, call: FileCall) -> bool:
    coded = call.form != "float32"
    if not (layer.quantized and coded and layer.scales <= call.numbers):
        return False
    return layer.operation in call.name if layer.mark is None else _carries(call, layer.mark)


def _is_float_form(layer: Layer, call: FileCall) -> bool:
    return layer.mark is not None and call.form == "float32" and _carries(call, layer.mark)


def _is_same_family(layer: Layer, call: FileCall) -> bool:
    if "conv" in layer.operation:
        return call.name.startswith(_CONVOLUTIONS)
    if layer.operation == "linear":
        return call.name.startswith(_LINEARS)
    return call.name.startswith(f"aten.{layer.operation}.")


def _carries(call: FileCall, mark: NDArray[np.float32]) -> bool:
    """Whether a constant of the call holds the values of ``mark``, in any layout, zero-padded."""
    wanted = np.sort(mark[mark != 0], axis=None)
    for constant in call.constants:
        if constant.dtype == "float32" and constant.data is not None:
            values = np.frombuffer(constant.data, np.float32)
            if np.array_equal(wanted, np.sort(values[values != 0])):
                return True
    return False
