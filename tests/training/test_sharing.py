"""Weights that several calls read: trained as one, or refused, never changed by the way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nybble
from nybble.contract import Array
from nybble.errors import ContractError
from nybble.graph import Graph, GraphBuilder
from nybble.training import AdamW, Trainer

from .conftest import program_of

RNG = np.random.default_rng(4)
CODES = RNG.integers(0, 256, (16, 8)).astype(np.uint8)
SCALES = RNG.uniform(0.05, 0.1, (2, 16)).astype(np.float32)


def two_layers(second_scales: Array = SCALES) -> Graph:
    """Two layers whose codes are two views of the same bytes, as the reader of programs gives."""
    b = GraphBuilder("forward")
    value = b.input("x", "float32", (4, 16))
    for scales in (SCALES, second_scales):
        value = b.call(
            "et_vk.linear_q4gsw.default", x=value, weight=CODES[:], scales=scales, group_size=8
        )
    return b.finish([value])


def tied() -> Graph:
    """An embedding and a last layer over the same codes."""
    b = GraphBuilder("forward")
    rows = b.call(
        "et_vk.embedding_q4gsw.default", weight=CODES[:], scales=np.ascontiguousarray(SCALES.T),
        group_size=8, indices=b.input("tokens", "int32", (4,)), is_linear_weight=True,
    )  # fmt: skip
    logits = b.call(
        "et_vk.linear_q4gsw.default", x=rows, weight=CODES[:], scales=SCALES, group_size=8
    )
    return b.finish([logits])


def test_layers_over_the_same_bytes_are_trained_as_one() -> None:
    """One state of codes for both, which gets the sum of their gradients."""
    trainer = Trainer(program_of(two_layers()), "mse")
    names = [name for name in trainer.engine.states.names() if name.endswith(".codes")]
    assert ["forward.linear_0.codes"] == names


def test_one_of_two_layers_over_the_same_bytes_is_refused() -> None:
    """The other would change with it when the program is saved."""
    with pytest.raises(ContractError, match="shares its weight with forward.linear_0"):
        Trainer(program_of(two_layers()), "mse", trainable="*_0")


def test_layers_over_the_same_bytes_need_the_same_scales() -> None:
    """One code cannot stand for two float weights."""
    with pytest.raises(ContractError, match="different scales"):
        Trainer(program_of(two_layers(SCALES * np.float32(2))), "mse")


def test_layer_tied_to_an_embedding_is_refused() -> None:
    """Before training starts, and with the embedding named."""
    with pytest.raises(ContractError, match=r"embedding_q4gsw.default \(.*would change with it"):
        Trainer(program_of(tied()))


@pytest.mark.parametrize("graph", [two_layers(), tied()])
def test_adapter_of_a_shared_weight_is_not_merged(graph: Graph) -> None:
    """It is trained and saved beside the program, but rounding it in would change other calls."""
    loss = "mse" if graph.inputs[0].dtype.name == "float32" else "cross_entropy"
    trainer = Trainer(program_of(graph), loss, mode="adapter")
    with pytest.raises(ContractError, match="cannot be merged"):
        trainer.merge()


@pytest.mark.export
def test_exported_layers_with_one_stored_weight_deploy_as_trained(tmp_path: Path) -> None:
    """Equal layers of a real file stay equal, and the file gives what the trainer gives."""
    torch = pytest.importorskip("torch")
    from nybble.export import export

    layers = [torch.nn.Linear(32, 32) for _ in range(2)]
    layers[1].weight = torch.nn.Parameter(layers[0].weight.detach().clone())
    x = torch.randn(4, 32)
    file = tmp_path / "equal.pte"
    module = torch.nn.Sequential(*layers).eval()
    export(module, (x,), file, quantize="int4", group_size=32)
    trainer = Trainer(nybble.load(file, device="host"), "mse", optimizer=AdamW(lr=0.05))
    for _ in range(3):
        trainer.step(x.numpy(), np.zeros((4, 32), np.float32))
    trainer.save(tmp_path / "tuned.pte")
    tuned = nybble.load(tmp_path / "tuned.pte", device="host")
    np.testing.assert_array_equal(trainer.forward(x.numpy()), tuned(x.numpy()))
