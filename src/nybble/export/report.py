"""What became of a module on export: one row per layer, and the warnings that follow from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from rich.table import Table

if TYPE_CHECKING:
    import torch

__all__ = ["ExportReport", "ExportWarning", "Form", "LayerReport", "nothing_quantized"]

Form: TypeAlias = Literal["float32", "int8", "int4", "int8-dynamic"]
"""What a layer computes on. With "int8-dynamic" its weight is in int4, its input in int8."""


_NAMED = 4
"""Layers that a line names one by one."""


class ExportWarning(UserWarning):
    """Something was exported in another form than asked for."""


@dataclass(frozen=True, slots=True)
class LayerReport:
    """One layer of the module and what it is in the file.

    ``path`` is the layer's name in the module, ``kind`` its class or function; ``operator`` is
    None where no call of the file could be told to be this layer. ``form`` is what it computes on
    in the file, and ``wanted`` the form that was asked for and that VulkanBackend has for such a
    layer, None without one. ``reason`` says why it is in float32 although another was asked for.
    """

    path: str
    kind: str
    operator: str | None
    form: Form
    wanted: Form | None
    reason: str | None

    @property
    def given_up(self) -> bool:
        """Whether the exporter did not use the form that was asked for."""
        return self.wanted is not None and self.form == "float32"

    @property
    def warning(self) -> str:
        """The sentence that says what was given up, and why."""
        found = f" (as {self.operator})" if self.operator else ""
        return (
            f"{self.path} ({self.kind}) is computed in float32{found}, not in {self.wanted}: "
            f"{self.reason}."
        )


@dataclass(frozen=True, slots=True)
class ExportReport:
    """The result of an export.

    ``reference`` is the captured module, after quantization if any: its answers are what the
    program's are to be compared with. ``size`` counts the bytes of the file at ``path``;
    ``outside`` names the operators outside VulkanBackend, one entry per call; ``seconds`` are the
    stages of the export with their times.
    """

    path: Path
    size: int
    layers: tuple[LayerReport, ...]
    outside: tuple[str, ...]
    warnings: tuple[str, ...]
    seconds: tuple[tuple[str, float], ...]
    reference: torch.nn.Module

    def table(self) -> Table:
        """The layers as a table for ``rich.print``."""
        table = Table(title=self.summary, title_justify="left")
        for heading in ("layer", "kind", "operator in the file", "form", "why float32"):
            table.add_column(heading, overflow="fold")
        for layer in self.layers:
            row = (layer.path, layer.kind, layer.operator or "?", layer.form, layer.reason or "")
            table.add_row(*row)
        return table

    @property
    def summary(self) -> str:
        """The file, its size, and how many layers are in which form."""
        total = len(self.layers)
        counts = Counter(layer.form for layer in self.layers if layer.form != "float32")
        listed = [f"{count} of {total} layers in {form}" for form, count in counts.items()]
        size = f"{self.path}: {self.size:,} bytes"
        return ", ".join((size, *(listed or [f"0 of {total} layers quantized"])))

    def __repr__(self) -> str:
        return f"<ExportReport {self.summary}>"

    def __str__(self) -> str:
        """The summary; below it, where a form was asked for, the layers in float32 and why."""
        kept: dict[str, list[str]] = {}
        for layer in self.layers:
            if layer.form == "float32" and layer.reason is not None:
                kept.setdefault(layer.reason, []).append(f"{layer.path} ({layer.kind})")
        lines = (f"  float32: {_listed(names)}: {reason}" for reason, names in kept.items())
        return "\n".join((self.summary, *lines))


def nothing_quantized(
    module: torch.nn.Module, asked: Form, layers: Sequence[LayerReport]
) -> list[str]:
    """The sentence that says so where no layer is in the form asked for; else nothing."""
    if asked == "float32" or any(layer.form != "float32" for layer in layers):
        return []
    start = f'quantize="{asked}" quantized nothing of {type(module).__name__}: '
    given_up = sum(layer.given_up for layer in layers)
    if given_up:
        follows = "the next warning says" if given_up == 1 else "the next warnings say"
        return [f"{start}{follows} why."]
    kinds = ", ".join(dict.fromkeys(layer.kind for layer in layers))
    if asked == "int8":
        found = f"it has {kinds} alone" if kinds else "it has none"
        return [f"{start}only convolutions, Linear layers and sums have an int8 form, and {found}."]
    if kinds:
        return [
            f"{start}only Linear and Embedding layers have a 4-bit form, and it has {kinds} alone."
        ]
    return [f"{start}it has no Linear or Embedding layer, and only those have a 4-bit form."]


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"
