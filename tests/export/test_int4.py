"""4-bit weights and dynamic int8 activations: what the file holds, and what is given up."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import nybble
import nybble.export
from nybble.export import ExportReport, ExportWarning
from nybble.export.file_calls import FileCall, calls_in_file

pytestmark = pytest.mark.export

GROUP = 8


class Mixed(nn.Module):
    """Layers that become 4-bit, and one of each kind that does not."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(12, 32)
        self.narrow = nn.Embedding(12, 16)
        self.first = nn.Linear(32, 20)
        self.twice = nn.Linear(20, 20)
        self.free = nn.Parameter(torch.randn(24, 32))
        self.attention = nn.MultiheadAttention(24, 2, batch_first=True)
        self.along = nn.Conv1d(24, 24, 1)
        self.odd = nn.Linear(24, 10)

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Ten and twenty numbers for each token."""
        rows = self.tokens(tokens)
        hidden = functional.linear(rows, self.free) + self.narrow(tokens).repeat(1, 1, 2)[..., :24]
        hidden = self.along(hidden.transpose(1, 2)).transpose(1, 2)
        attended = self.attention(hidden, hidden, hidden, need_weights=False)[0]
        return self.odd(attended), self.twice(self.first(rows))


Exported = tuple[ExportReport, list[str], Mixed]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """One export of Mixed in groups of 8, with the warnings it gave."""
    torch.manual_seed(0)
    module = Mixed().eval()
    path = tmp_path_factory.mktemp("int4") / "mixed.pte"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ExportWarning)
        report = nybble.export.export(
            module,
            torch.tensor([[3, 0, 11]]),
            path,
            quantize="int4",
            group_size=GROUP,
            progress=False,
        )
    return report, [str(w.message) for w in caught if w.category is ExportWarning], module


def test_every_4_bit_layer_names_its_operator(mixed: Exported) -> None:
    """Layers that the exporter takes in 4 bits, and only those, are of the form int4."""
    found = {layer.path: layer.operator for layer in mixed[0].layers if layer.form == "int4"}

    assert {
        "tokens": "et_vk.embedding_q4gsw.default",
        "first": "et_vk.linear_q4gsw.default",
    } == found
    assert " 2 of 9 layers in int4" in str(mixed[0])


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        ("narrow (Embedding)", "4-bit embedding needs columns in multiples of 32, received 16"),
        ("twice (Linear)", "20 input features do not fill groups of 8; choose a group_size that"),
        ("odd (Linear)", "needs output features in multiples of 4, received 10"),
        ("linear (Mixed)", "only Linear and Embedding modules that the module itself calls"),
        ("attention (MultiheadAttention)", "only Linear and Embedding modules that the module"),
    ],
)
def test_a_layer_kept_in_float_is_named_with_its_reason(
    mixed: Exported, layer: str, reason: str
) -> None:
    """A linear or embedding that is not 4-bit is warned about: path, type, operator, reason."""
    matching = [text for text in mixed[1] if text.startswith(layer)]

    # MultiheadAttention has two products with weights, which became two operators.
    assert (2 if layer.startswith("attention") else 1) == len(matching)
    for text in matching:
        assert "is computed in float32 (as aten." in text
        assert "not in int4" in text
        assert reason in text


def test_a_convolution_is_listed_but_not_called_given_up(mixed: Exported) -> None:
    """There is no 4-bit convolution: the report says so, no warning does."""
    report, sentences, _ = mixed
    (layer,) = (layer for layer in report.layers if layer.path == "along")

    assert "VulkanBackend has no 4-bit form of conv1d" == layer.reason
    assert not layer.given_up
    assert not [text for text in sentences if text.startswith("along")]


def test_the_module_keeps_its_float_weights(mixed: Exported) -> None:
    """Quantization works on a copy: the module's own parameters are still plain float tensors."""
    module = mixed[2]

    assert all(type(weight) is nn.Parameter for weight in module.parameters())
    assert torch.float32 == module.first.weight.dtype


def _packed(weight: np.ndarray, group: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes [N, K/2] and scales [K/group, N], worked out one group at a time."""
    rows, columns = weight.shape
    codes = np.zeros((rows, columns), np.uint8)
    scales = np.zeros((columns // group, rows), np.float32)
    for row in range(rows):
        for start in range(0, columns, group):
            part = weight[row, start : start + group]
            scale = np.abs(part).max() / np.float32(7.5)
            scales[start // group, row] = scale
            # torchao multiplies by the reciprocal, which decides the ties of the extremes.
            steps = np.rint(part * (np.float32(1) / scale))
            codes[row, start : start + group] = np.clip(steps, -8, 7) + 8
    return codes[:, ::2] | codes[:, 1::2] << 4, scales


def _constant(call: FileCall, dtype: str) -> np.ndarray:
    """The first constant of a call of that dtype."""
    found = next(c for c in call.constants if c.dtype == dtype)
    assert found.data is not None
    return np.frombuffer(found.data, dtype).reshape(found.shape)


def test_codes_and_scales_in_the_file_are_those_of_the_weight(mixed: Exported) -> None:
    """The file holds rounded weights over scales of 1/7.5 of a group's largest magnitude."""
    report, _, module = mixed
    calls = calls_in_file(report.path.read_bytes())
    (call,) = (call for call in calls if call.name == "et_vk.linear_q4gsw.default")
    codes, scales = _packed(module.first.weight.detach().numpy(), GROUP)

    np.testing.assert_allclose(scales, _constant(call, "float32"), rtol=1e-6)
    np.testing.assert_array_equal(codes, _constant(call, "uint8"))


class Small(nn.Module):
    """An embedding, causal attention and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(16, 32)
        self.out = nn.Linear(32, 12)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Twelve numbers for each token."""
        rows = self.tokens(tokens)
        heads = rows.unflatten(-1, (2, 16)).transpose(1, 2)
        attended = functional.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
        return self.out(attended.transpose(1, 2).flatten(2))


@pytest.mark.parametrize(
    ("quantize", "form", "operator"),
    [
        ("int4", "int4", "et_vk.linear_q4gsw.default"),
        ("int8-dynamic", "int8-dynamic", "et_vk.linear_dq8ca_q4gsw.default"),
    ],
)
def test_an_exported_program_gives_the_reference_models_outputs(
    tmp_path: Path, quantize: Literal["int4", "int8-dynamic"], form: str, operator: str
) -> None:
    """Both 4-bit forms run in nybble with the outputs of the quantized module, nothing outside."""
    torch.manual_seed(1)
    module, tokens = Small().eval(), torch.arange(10).reshape(2, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExportWarning)
        report = nybble.export.export(
            module, tokens, tmp_path / "m.pte", quantize=quantize, progress=False
        )
    names = [call.name for call in calls_in_file(report.path.read_bytes())]

    assert [("tokens", "int4"), ("out", form)] == [(row.path, row.form) for row in report.layers]
    assert operator == report.layers[1].operator
    assert () == report.outside
    assert 1 == names.count("et_vk.sdpa.default")
    expected = report.reference(tokens).detach().numpy()
    program = nybble.load(report.path, device="host")
    np.testing.assert_allclose(expected, program(tokens.numpy()), rtol=1e-5, atol=1e-5)
    # Four bits lose something, but not the answer.
    assert 0.02 < np.abs(module(tokens).detach().numpy() - expected).max() < 0.5


def test_group_size_none_gives_one_scale_a_row(tmp_path: Path) -> None:
    """Without groups, a row of 20 features, which 32 does not divide, has one scale."""
    report = nybble.export.export(
        nn.Linear(20, 8).eval(),
        torch.randn(1, 20),
        tmp_path / "row.pte",
        quantize="int4",
        group_size=None,
        progress=False,
    )
    (call,) = calls_in_file(report.path.read_bytes())

    assert "et_vk.linear_q4gsw.default" == call.name
    assert (1, 8) == _constant(call, "float32").shape
