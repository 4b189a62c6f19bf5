"""An export that quantizes nothing says so, once, and why."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import nybble.export
from nybble.export import ExportReport, ExportWarning

pytestmark = pytest.mark.export


class Recurrent(nn.Module):
    """An LSTM, whose weights are no Linear modules."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Eight numbers a step."""
        return self.lstm(x)[0]


def exported(module: nn.Module, example: Any, path: Path, **options: Any) -> ExportReport:
    """Export without the warnings, which the report has too."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ExportWarning)
        report = nybble.export.export(module.eval(), example, path, progress=False, **options)
    told = [str(item.message) for item in caught if item.category is ExportWarning]
    assert list(report.warnings) == told
    return report


@pytest.mark.parametrize(
    ("module", "example", "why"),
    [
        (Recurrent(), torch.zeros(2, 1, 8), "it has no Linear or Embedding layer"),
        (
            nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 1)),
            torch.zeros(1, 3, 6, 6),
            r"only Linear and Embedding layers have a 4-bit form, and it has Conv2d alone",
        ),
        (nn.Linear(20, 4), torch.zeros(1, 20), "the next warnings? says? why"),
    ],
)
def test_int4_of_a_module_without_4_bit_layers_warns(
    tmp_path: Path, module: nn.Module, example: torch.Tensor, why: str
) -> None:
    """One sentence, first of all warnings, with the reason."""
    report = exported(module, example, tmp_path / "m.pte", quantize="int4")
    found = [text for text in report.warnings if "quantized nothing" in text]

    assert 1 == len(found)
    assert found[0] == report.warnings[0]
    assert found[0].startswith(f'quantize="int4" quantized nothing of {type(module).__name__}: ')
    assert re.search(why, found[0])


def test_int8_that_quantizes_nothing_warns(tmp_path: Path) -> None:
    """Static quantization too can find nothing that it knows."""
    example = torch.zeros(1, 8)
    options = {"quantize": "int8", "calibration": [example]}
    report = exported(nn.Sigmoid(), example, tmp_path / "m.pte", **options)
    assert "quantized nothing of Sigmoid" in report.warnings[0]


def test_an_export_in_float32_or_with_a_quantized_layer_does_not_warn(tmp_path: Path) -> None:
    """The sentence is for what was asked and did not happen."""
    example = torch.zeros(1, 32)
    assert () == exported(nn.Linear(32, 4), example, tmp_path / "a.pte").warnings
    assert () == exported(nn.Linear(32, 4), example, tmp_path / "b.pte", quantize="int4").warnings
