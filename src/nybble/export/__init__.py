"""From a PyTorch module to a ``.pte`` program, through the stock wheel (extra nybble[export])."""

from __future__ import annotations

from nybble.export.api import export
from nybble.export.report import ExportReport, ExportWarning, Form, LayerReport

__all__ = ["ExportReport", "ExportWarning", "Form", "LayerReport", "export"]
