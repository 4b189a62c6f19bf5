"""What ``nybble.export.export`` writes, warns about and refuses."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import nybble.export
from nybble.errors import NybbleError
from nybble.export import ExportReport, ExportWarning, export
from nybble.formats import DelegateTensor, read_program

pytestmark = pytest.mark.export

Exported = tuple[ExportReport, list[str], nn.Module]


class Mixed(nn.Module):
    """Layers whose int8 form the exporter takes, and one of each kind that it gives up."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU())
        self.depthwise = nn.Conv2d(6, 6, 3, padding=1, groups=6)
        self.grouped = nn.Conv2d(6, 6, 3, padding=1, groups=3)
        self.dilated = nn.ConvTranspose2d(6, 4, 3, dilation=2)
        self.twice = nn.Conv2d(4, 4, 1)
        self.head = nn.Linear(4, 10)
        self.odd = nn.Linear(10, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Seven numbers a row."""
        x = self.stem(x)
        x = x + self.depthwise(x)
        x = self.dilated(self.grouped(x))
        x = self.twice(torch.floor(self.twice(x)))
        return self.odd(torch.relu(self.head(x.mean((2, 3)))))


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """One export of Mixed in training mode, with the warnings it gave."""
    torch.manual_seed(0)
    module = Mixed()
    example = torch.randn(1, 3, 8, 8)
    path = tmp_path_factory.mktemp("export") / "mixed.pte"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ExportWarning)
        report = nybble.export.export(
            module, example, path, quantize="int8", calibration=[example] * 2, progress=False
        )
    sentences = [str(w.message) for w in caught if w.category is ExportWarning]
    return report, sentences, module


def test_layers_that_stay_int8_name_their_operator(mixed: Exported) -> None:
    """Layers that the exporter takes in int8 are reported with the q8ta operator in the file."""
    found = {layer.path: layer.operator for layer in mixed[0].layers if layer.form == "int8"}

    assert {
        "stem.0": "et_vk.q8ta_conv2d.default",
        "add": "et_vk.q8ta_add.default",
        "twice": "et_vk.q8ta_conv2d_pw.default",
        "head": "et_vk.q8ta_linear_gemv.default",
    } == found


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        ("depthwise (Conv2d)", "depthwise convolution needs channels in multiples of 4"),
        ("grouped (Conv2d)", "output channels per group in multiples of 4, received 2"),
        ("dilated (ConvTranspose2d)", "transposed convolution needs dilation 1"),
        ("twice (Conv2d)", "shares its weight with a layer before it"),
        ("odd (Linear)", "input features in multiples of 4, received 10"),
    ],
)
def test_every_layer_given_up_is_named_with_its_reason(
    mixed: Exported, layer: str, reason: str
) -> None:
    """A layer that became float32 gets one warning: path, type, operator in the file, reason."""
    matching = [text for text in mixed[1] if text.startswith(layer)]

    assert 1 == len(matching)
    assert "computed in float32 (as aten." in matching[0]
    assert reason in matching[0]


def test_operators_outside_the_delegates_are_named(
    mixed: Exported,
) -> None:
    """Kernel calls that the partitioner left outside VulkanBackend are listed and warned about."""
    report, sentences, _ = mixed

    assert {"aten.floor.out", "aten.mean.out"} <= set(report.outside)
    assert any("outside VulkanBackend" in text and "aten.floor.out" in text for text in sentences)


def test_what_nybble_cannot_run_is_said_at_once(tmp_path: Path) -> None:
    """A file that no device of nybble loads is written, for others, with a warning that says so."""
    module = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Softplus())
    with pytest.warns(ExportWarning, match="(?s)itself cannot run .*aten.log1p.out is not an"):
        export(module, torch.ones(1, 8), tmp_path / "soft.pte", progress=False)


def test_halves_are_refused_with_what_to_export_instead(tmp_path: Path) -> None:
    """No program of float16 can be run, so none is written."""
    with pytest.raises(NybbleError, match=r"dtype torch.float16, .*module.float\(\)"):
        export(torch.nn.Linear(8, 8).half(), torch.ones(1, 8).half(), tmp_path / "half.pte")
    assert not (tmp_path / "half.pte").exists()


def test_training_mode_is_warned_about_and_left_as_it_was(
    mixed: Exported,
) -> None:
    """A module in training mode is exported as in evaluation, warned about, and not changed."""
    _, sentences, module = mixed

    assert any("training mode" in text for text in sentences)
    assert all(part.training for part in module.modules())


def test_report_tells_the_size_of_the_file(mixed: Exported) -> None:
    """The report's size is that of the file, and its sentence counts the int8 layers."""
    report = mixed[0]

    assert report.path.stat().st_size == report.size
    assert report.summary.endswith("4 of 9 layers in int8")
    assert report.summary == str(report).splitlines()[0]


def test_the_printed_report_says_which_layers_stayed_float_and_why(mixed: Exported) -> None:
    """Below the summary stands a line a reason, with the layers that it holds for."""
    lines = str(mixed[0]).splitlines()[1:]
    kept = [layer for layer in mixed[0].layers if layer.form == "float32"]

    assert 5 == len(kept)
    assert {layer.reason for layer in kept} == {line.rsplit("): ", 1)[1] for line in lines}
    assert all(any(f"{layer.path} ({layer.kind})" in line for line in lines) for layer in kept)


def test_float_export_reports_no_layer_as_given_up(tmp_path: Path) -> None:
    """Without quantize nothing is called given up, and the weights in the file are the module's."""
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 1)).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExportWarning)
        report = nybble.export.export(
            module,
            torch.randn(1, 3, 5, 5),
            tmp_path / "float.pte",
            partitioner="webgpu",
            progress=False,
        )

    assert ["float32", "float32"] == [layer.form for layer in report.layers]
    assert ["0", "2"] == [layer.path for layer in report.layers]
    assert all(layer.operator is not None for layer in report.layers)
    graph = read_program(report.path.read_bytes()).methods[0].delegates[0].graph
    assert graph is not None
    weight = module[0].weight.detach().numpy().tobytes()
    constants = [value.data for value in graph.values if isinstance(value, DelegateTensor)]
    assert weight in [bytes(data) for data in constants if data is not None]


def test_dynamic_shapes_take_calibration_of_any_size(tmp_path: Path) -> None:
    """With a dynamic batch dimension, calibration batches of other sizes are accepted."""
    batch = torch.export.Dim("batch", min=2, max=8)
    report = nybble.export.export(
        nn.Linear(8, 4).eval(),
        torch.randn(3, 8),
        tmp_path / "dynamic.pte",
        quantize="int8",
        calibration=[torch.randn(5, 8)],
        dynamic_shapes=({0: batch},),
        progress=False,
    )

    assert (7, 4) == tuple(report.reference(torch.zeros(7, 8)).shape)
    assert ["int8"] == [layer.form for layer in report.layers]


@pytest.mark.filterwarnings("ignore:.*quantized nothing of Conv1d")
def test_a_three_dimensional_convolution_is_left_in_float(tmp_path: Path) -> None:
    """A quantized 1-D convolution would make the exporter stop; it stays float, with a warning."""
    example = torch.randn(1, 4, 9)
    with pytest.warns(ExportWarning, match="int8 convolutions of two dimensions only, not conv1d"):
        report = nybble.export.export(
            nn.Conv1d(4, 8, 3).eval(),
            example,
            tmp_path / "conv1d.pte",
            quantize="int8",
            calibration=[example],
            progress=False,
        )

    expected = report.reference(example).detach().numpy()
    assert expected.dtype == np.float32
    assert ["float32"] == [layer.form for layer in report.layers]
