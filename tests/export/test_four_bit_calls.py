"""4-bit layers behind views, called twice, and given vectors: what the exporter would misread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from torch import nn

import nybble
import nybble.export
from nybble.errors import NybbleError
from nybble.training.layers import find_layers

pytestmark = pytest.mark.export

GROUP = 4


class Around(nn.Module):
    """One 4-bit layer, and what a test does with it."""

    def __init__(self, features: int, call: Callable[[nn.Module, torch.Tensor], object]) -> None:
        super().__init__()
        self.layer = nn.Linear(features, 16)
        self.call = call

    def forward(self, x: torch.Tensor) -> object:
        """What the test asks for."""
        return self.call(self.layer, x)


@pytest.mark.parametrize(
    ("features", "shape", "call"),
    [
        (80, (2, 5, 4, 4), lambda layer, x: layer(torch.tanh(x).flatten(1))),
        (20, (2, 4, 5), lambda layer, x: layer(x.flatten(1))),
        (16, (2, 5, 16), lambda layer, x: layer(x.reshape(10, 16)).softmax(0)),
        (8, (4, 16), lambda layer, x: layer(x.view(8, 8))),
    ],
    ids=["flatten-channels", "flatten-odd", "rows-of-batches", "split-rows"],
)
def test_a_layer_multiplies_the_view_that_it_is_given(
    features: int, shape: tuple[int, ...], call: Callable[..., object], tmp_path: Path
) -> None:
    """A layer behind a view is 4-bit, and gives the shape and values of the quantized module."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    path = tmp_path / "view.pte"
    report = nybble.export.export(
        Around(features, call).eval(), x, path, quantize="int4", group_size=GROUP, progress=False
    )
    with torch.no_grad():
        expected = report.reference(x).numpy()

    found = nybble.load(path, device="host")(x.numpy())

    assert ["int4"] == [layer.form for layer in report.layers]
    assert expected.shape == found.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("form", ["int4", "int8-dynamic"])
def test_a_layer_called_twice_is_stored_once(
    form: Literal["int4", "int8-dynamic"], tmp_path: Path
) -> None:
    """Both calls are 4-bit, read one stored weight, and are trained as one."""
    x = torch.randn((3, 16), generator=torch.Generator().manual_seed(0))
    path, tuned = tmp_path / "twice.pte", tmp_path / "tuned.pte"
    module = Around(16, lambda layer, x: layer(torch.relu(layer(x)))).eval()
    report = nybble.export.export(module, x, path, quantize=form, group_size=GROUP, progress=False)
    program = nybble.load(path, device="host")
    one, other = find_layers(program.method().graph)
    with torch.no_grad():
        expected = report.reference(x).numpy()
    np.testing.assert_allclose(program(x.numpy()), expected, rtol=1e-5, atol=1e-6)
    assert np.shares_memory(one.codes, other.codes)

    trainer = nybble.Trainer(program, optimizer=nybble.AdamW(lr=0.05))
    trainer.step(x.numpy(), np.array([0, 5, 9]))
    trainer.save(tuned)

    np.testing.assert_array_equal(
        nybble.load(tuned, device="host")(x.numpy()), trainer.forward(x.numpy())
    )


def test_a_vector_for_int8_inputs_is_refused(tmp_path: Path) -> None:
    """The exporter finds no row in a vector: the layer is named, and what to do."""
    module = Around(16, lambda layer, x: layer(x)).eval()

    with pytest.raises(NybbleError, match=r"^layer \(Linear\) is given a vector.*a batch axis"):
        nybble.export.export(
            module, torch.zeros(16), tmp_path / "vector.pte", quantize="int8-dynamic",
            group_size=GROUP, progress=False,
        )  # fmt: skip
