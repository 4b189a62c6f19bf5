"""Low-rank adapters beside frozen codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nybble.errors import ContractError
from nybble.training import AdamW, Trainer
from nybble.training.files import read_safetensors

from .conftest import mlp, program_of
from .test_trainer import batch


def trained(steps: int = 40) -> Trainer:
    """A trainer of adapters after some steps."""
    trainer = Trainer(program_of(mlp()), mode="adapter", rank=4, alpha=8, optimizer=AdamW(lr=2e-2))
    for _ in range(steps):
        trainer.step(*batch())
    return trainer


def test_new_adapters_change_nothing() -> None:
    """Before the first step the program's outputs are its own."""
    program = program_of(mlp())
    trainer = Trainer(program, mode="adapter")
    np.testing.assert_array_equal(program(batch()[0]), trainer.forward(batch()[0]))


def test_adapters_learn_and_codes_stay() -> None:
    """The loss falls, and no code changes."""
    trainer = trained()
    assert trainer.evaluate([batch()]).loss < 0.3
    for layer in trainer.layers:
        np.testing.assert_array_equal(layer.codes, trainer.state(f"{layer.name}.codes"))
    assert not any("latent" in name for name in trainer.engine.states.names())


def test_saved_adapters_have_pefts_keys(tmp_path: Path) -> None:
    """A folder gets PEFT's two files, with factors of PEFT's shapes under its keys."""
    trainer = trained(3)
    trainer.save(tmp_path / "adapter")
    tensors, _ = read_safetensors(tmp_path / "adapter" / "adapter_model.safetensors")
    assert {
        "base_model.model.forward.linear_0.lora_A.weight": (4, 16),
        "base_model.model.forward.linear_0.lora_B.weight": (24, 4),
        "base_model.model.forward.linear_1.lora_A.weight": (4, 24),
        "base_model.model.forward.linear_1.lora_B.weight": (12, 4),
    } == {name: tensor.shape for name, tensor in tensors.items()}
    config = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    assert ("LORA", 4, 8) == (config["peft_type"], config["r"], config["lora_alpha"])


def test_merged_adapters_are_in_the_codes() -> None:
    """After a merge the codes hold most of what was learned, and the adapters are zero."""
    trainer = trained()
    before = trainer.evaluate([batch()]).loss
    untrained = Trainer(program_of(mlp())).evaluate([batch()]).loss
    trainer.merge()
    after = trainer.evaluate([batch()]).loss
    assert before < after < 0.6 * untrained
    assert not trainer.state("forward.linear_0.lora_B").any()
    assert not np.array_equal(trainer.layers[0].codes, trainer.state("forward.linear_0.codes"))


def test_unmerged_adapters_do_not_go_into_a_program(tmp_path: Path) -> None:
    """Saving a program without merging says what to do."""
    with pytest.raises(ContractError, match="call trainer.merge"):
        trained(2).save(tmp_path / "tuned.pte")


def test_latent_trainer_has_nothing_to_merge() -> None:
    """Merging needs adapters."""
    with pytest.raises(ContractError, match='mode="adapter"'):
        Trainer(program_of(mlp())).merge()


def test_rank_must_be_positive() -> None:
    """A rank of zero is refused."""
    with pytest.raises(ContractError, match="rank: expected a positive integer, received 0"):
        Trainer(program_of(mlp()), mode="adapter", rank=0)


@pytest.mark.parametrize("sizes", [{"rank": 8}, {"alpha": 16.0}])
def test_sizes_of_an_adapter_are_refused_where_none_is_trained(sizes: dict[str, Any]) -> None:
    """Who names a rank expects adapters, and would get latents."""
    with pytest.raises(ContractError, match='give mode="adapter" with them'):
        Trainer(program_of(mlp()), **sizes)
