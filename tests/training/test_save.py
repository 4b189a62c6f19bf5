"""Programs with new codes: what changes in the file, and what the file then gives."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest

import nybble
from nybble.contract import Array
from nybble.errors import ContractError, NybbleError
from nybble.program import Program
from nybble.training import AdamW, Trainer
from nybble.training.layers import find_layers
from nybble.training.rewrite import Replacement, rewrite_program
from nybble.training.tuned import replacements

FIXTURES = Path(__file__).parents[1] / "fixtures"
TRAINED = (
    "q4_linear", "q4_linear_group12", "q4_linear_rank3", "q4_mlp_batch8", "q4_transformer",
    "dq8ca_mlp",
)  # fmt: skip


def inputs_of(program: Program, seed: int = 0) -> list[Array]:
    """Random inputs: small integers, or normal floats."""
    rng = np.random.default_rng(seed)
    return [
        rng.integers(0, 8, spec.shape).astype(spec.dtype)
        if np.dtype(spec.dtype).kind == "i"
        else rng.standard_normal(spec.shape).astype(spec.dtype)
        for spec in program["forward"].inputs
    ]


def tuned(name: str, device: str, path: Path, steps: int = 3) -> tuple[Trainer, list[Array]]:
    """A trainer after some steps, its program written to ``path``."""
    program = nybble.load(FIXTURES / f"{name}.pte", device=device)
    trainer = Trainer(program, optimizer=AdamW(lr=0.05))
    inputs = inputs_of(program)
    shape = program["forward"].outputs[0].shape
    labels = np.random.default_rng(1).integers(0, shape[-1], shape[:-1])
    for _ in range(steps):
        trainer.step(*inputs, labels)
    trainer.save(path)
    return trainer, inputs


@pytest.mark.device
@pytest.mark.parametrize("device", ["host", "webgpu", "vulkan"])
@pytest.mark.parametrize("name", TRAINED)
def test_tuned_program_gives_the_trainers_outputs(name: str, device: str, tmp_path: Path) -> None:
    """The written file, loaded anew, computes what the trainer's forward pass does, to the bit."""
    path = tmp_path / "tuned.pte"
    trainer, inputs = tuned(name, device, path)
    expected = trainer.forward(*inputs)
    original = nybble.load(FIXTURES / f"{name}.pte", device=device)
    assert not np.array_equal(expected, original(*inputs))
    np.testing.assert_array_equal(expected, nybble.load(path, device=device)(*inputs))


def test_nothing_but_codes_and_their_digests_change(tmp_path: Path) -> None:
    """Every byte that differs is a weight's, or of a name that is a weight's SHA-256."""
    path = tmp_path / "tuned.pte"
    trainer, _ = tuned("q4_mlp_batch8", "host", path)
    before = (FIXTURES / "q4_mlp_batch8.pte").read_bytes()
    after = path.read_bytes()
    assert len(before) == len(after)
    allowed = np.zeros(len(before), bool)
    for layer in trainer.layers:
        raw = layer.codes.tobytes()
        for text in (raw, hashlib.sha256(raw).hexdigest().encode()):
            for match in re.finditer(re.escape(text), before):
                allowed[match.start() : match.end()] = True
    differs = np.frombuffer(before, np.uint8) != np.frombuffer(after, np.uint8)
    assert differs.any()
    assert not (differs & ~allowed).any()


def test_untrained_program_is_written_as_it_was(tmp_path: Path) -> None:
    """No step, no changed byte: padding nibbles and all."""
    for name in (*TRAINED, "q4_linear_group4"):
        program = nybble.load(FIXTURES / f"{name}.pte", device="host")
        Trainer(program).save(tmp_path / "same.pte")
        assert (FIXTURES / f"{name}.pte").read_bytes() == (tmp_path / "same.pte").read_bytes()


def test_a_tuned_program_can_be_trained_again(tmp_path: Path) -> None:
    """A second trainer starts where the first one's codes are."""
    trainer, inputs = tuned("q4_mlp_batch8", "host", tmp_path / "once.pte")
    again = Trainer(nybble.load(tmp_path / "once.pte", device="host"))
    np.testing.assert_array_equal(trainer.forward(*inputs), again.forward(*inputs))


def test_resume_loads_the_checkpoints_own_program(tmp_path: Path) -> None:
    """Without a program at hand, the copy in the folder is trained on."""
    trainer, inputs = tuned("q4_mlp_batch8", "host", tmp_path / "tuned.pte")
    trainer.checkpoint(tmp_path / "run")
    resumed = Trainer.resume(tmp_path / "run", device="host")
    np.testing.assert_array_equal(trainer.forward(*inputs), resumed.forward(*inputs))
    assert 3 == resumed.steps


def test_program_goes_into_a_pte(tmp_path: Path) -> None:
    """Another ending is refused, before anything is written."""
    trainer, _ = tuned("q4_linear", "host", tmp_path / "tuned.pte")
    with pytest.raises(ContractError, match="ends in .pte"):
        trainer.save(tmp_path / "tuned.bin")


def test_weight_outside_the_program_cannot_be_replaced() -> None:
    """Constants of a .ptd are not in the program's bytes, and the error says so."""
    data = (FIXTURES / "q4_linear.pte").read_bytes()
    elsewhere = np.zeros(8, np.uint8)
    with pytest.raises(NybbleError, match="not stored in the program itself"):
        rewrite_program(data, [Replacement("forward.linear_0", elsewhere, elsewhere + 1)])


def test_layers_that_share_bytes_must_stay_equal() -> None:
    """Two layers over one stored weight cannot get different codes."""
    data = (FIXTURES / "q4_linear.pte").read_bytes()
    (layer,) = find_layers(nybble.load(data, device="host")["forward"].graph)
    items = [Replacement(f"layer_{i}", layer.codes, layer.codes + np.uint8(i)) for i in range(2)]
    with pytest.raises(NybbleError, match="layer_0 and layer_1 share one stored weight"):
        rewrite_program(data, items)


@pytest.mark.parametrize("name", ["dq8ca_linear", "dq8ca_linear_rank3", "dq8ca_mlp"])
def test_sums_of_codes_follow_the_codes(name: str) -> None:
    """Of unchanged codes the stored sums are what nybble computes: they may be replaced."""
    program = nybble.load(FIXTURES / f"{name}.pte", device="host")
    layers = find_layers(program["forward"].graph)
    items = replacements(layers, {layer.name: layer.codes for layer in layers})
    assert 2 * len(layers) == len(items)
    for item in items:
        np.testing.assert_array_equal(item.stored, item.content)


@pytest.mark.export
@pytest.mark.parametrize("name", TRAINED)
def test_executorchs_own_tools_read_the_tuned_program(name: str, tmp_path: Path) -> None:
    """The wheel's reader finds every constant, under the name that is its digest."""
    program = pytest.importorskip("executorch.exir._serialize._program")
    tuned(name, "host", tmp_path / "tuned.pte")
    read = program.deserialize_pte_binary((tmp_path / "tuned.pte").read_bytes())
    named = read.named_data
    assert named.pte_data
    for key, entry in named.pte_data.items():
        digest = hashlib.sha256(named.buffers[entry.buffer_index]).hexdigest()
        assert not re.fullmatch("[0-9a-f]{64}", key) or digest == key
