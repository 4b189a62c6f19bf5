"""What became of a module on export: one row per layer, and the warnings that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    import torch

__all__ = ["ExportReport", "ExportWarning", "LayerReport"]


class ExportWarning(UserWarning):
    """Something was exported in another form than asked for."""


@dataclass(frozen=True, slots=True)
class LayerReport:
    """One layer of the module and what it is in the file.

    ``path`` is the layer's name in the module, ``kind`` its class or function; ``operator`` is
    None where no call of the file could be told to be this layer. ``reason`` says why a layer is
    not int8 although "int8" was asked for, and ``given_up`` whether VulkanBackend has an int8
    form of it that the exporter did not use.
    """

    path: str
    kind: str
    operator: str | None
    int8: bool
    reason: str | None
    given_up: bool

    @property
    def warning(self) -> str:
        """The sentence that says what was given up, and why."""
        found = f" (as {self.operator})" if self.operator else ""
        return (
            f"{self.path} ({self.kind}) is computed in float32{found}, not in int8: {self.reason}."
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
        table = Table(title=str(self), title_justify="left")
        for heading in ("layer", "kind", "operator in the file", "int8", "why not"):
            table.add_column(heading, overflow="fold")
        for layer in self.layers:
            int8 = "yes" if layer.int8 else "no"
            row = (layer.path, layer.kind, layer.operator or "?", int8, layer.reason or "")
            table.add_row(*row)
        return table

    def __str__(self) -> str:
        int8 = sum(layer.int8 for layer in self.layers)
        return f"{self.path}: {self.size:,} bytes, {int8} of {len(self.layers)} layers in int8"
