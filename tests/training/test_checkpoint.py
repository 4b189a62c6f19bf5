"""Checkpoints: whole at any moment, and resuming goes on bit for bit."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from nybble.contract import Array
from nybble.errors import ContractError, NybbleError, ProgramFormatError
from nybble.graph import GraphBuilder, Value
from nybble.program import load
from nybble.training import AdamW, Cosine, Trainer
from nybble.training.checkpoint import contents_digest
from nybble.training.files import read_safetensors, safetensors_bytes, write_whole

from .conftest import mlp, program_of
from .test_trainer import batch, losses

SCHEDULE = Cosine(warmup=3, steps=20)


def new_trainer(**options: Any) -> Trainer:
    """A trainer whose settings are not the defaults."""
    return Trainer(
        program_of(mlp()), optimizer=AdamW(lr=1e-2, betas=(0.8, 0.99)), schedule=SCHEDULE,
        **options,
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["latent", "adapter"])
def test_resuming_goes_on_bit_for_bit(tmp_path: Path, mode: Any) -> None:
    """Losses, states and random draws after a restart are those of a run without one."""
    whole = new_trainer(mode=mode, seed=5)
    expected = losses(whole, 12)
    first = new_trainer(mode=mode, seed=5)
    losses(first, 7)
    first.rng.permutation(9)
    whole.rng.permutation(9)
    first.checkpoint(tmp_path)
    second = Trainer.resume(tmp_path, program_of(mlp()))
    actual = [float(second.step(*batch(seed))) for seed in range(7, 12)]
    assert expected[7:] == actual
    for name in whole.engine.states.names():
        np.testing.assert_array_equal(whole.state(name), second.state(name), err_msg=name)
    np.testing.assert_array_equal(whole.rng.permutation(100), second.rng.permutation(100))
    assert 12 == second.steps


@pytest.mark.export
def test_resuming_keeps_the_sizes_of_a_dynamic_program(tmp_path: Path) -> None:
    """A trainer of 4 rows goes on with 4 rows, not with the most that the program takes."""
    torch = pytest.importorskip("torch")
    from nybble.export import export

    path = tmp_path / "dynamic.pte"
    rows = torch.export.Dim("rows", min=1, max=8)
    module = torch.nn.Sequential(torch.nn.Linear(32, 12)).eval()
    export(
        module, torch.ones(2, 32), path, quantize="int4", dynamic_shapes=({0: rows},),
        progress=False,
    )  # fmt: skip
    program = load(path, device="host")
    x, labels = np.ones((4, 32), np.float32), np.arange(4)
    program(x)
    first = Trainer(program)
    first.step(x, labels)
    first.checkpoint(tmp_path / "run")
    expected = float(first.step(x, labels))

    second = Trainer.resume(tmp_path / "run", device="host")

    assert expected == float(second.step(x, labels))


@pytest.fixture(scope="module")
def positional(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A 4-bit layer plus rows of a table from the position on that the second input holds."""
    torch = pytest.importorskip("torch")
    from nybble.export import export

    class Positional(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(32, 12)
            self.register_buffer("table", 4 * torch.randn(16, 12))

        def forward(self, x: Any, position: Any) -> Any:
            start = position[0].item()
            torch._check(start >= 0)
            torch._check(start + 4 <= 16)
            return self.linear(x) + self.table.narrow(0, start, 4)

    path = tmp_path_factory.mktemp("positional") / "positional.pte"
    inputs = (torch.ones(4, 32), torch.tensor([3]))
    export(Positional().eval(), inputs, path, quantize="int4", progress=False)
    return path


@pytest.mark.export
def test_resuming_keeps_the_integers_of_a_positional_program(
    positional: Path, tmp_path: Path
) -> None:
    """A trainer at position 5 goes on at position 5: no graph for position 0 takes its place."""
    program = load(positional, device="host")
    x, labels, position = np.ones((4, 32), np.float32), np.arange(4), np.array([5])
    program(x, position)
    first = Trainer(program)
    first.step(x, position, labels)
    first.checkpoint(tmp_path / "run")
    expected = float(first.step(x, position, labels))
    outputs = first.forward(x, position)
    program(x, np.array([7]))

    for given in (None, program):
        second = Trainer.resume(tmp_path / "run", given, device="host")
        assert expected == float(second.step(x, position, labels))
        np.testing.assert_array_equal(outputs, second.forward(x, position))


@pytest.mark.export
def test_another_position_than_the_trainers_is_refused(positional: Path) -> None:
    """The trainer's graph holds one position: others are no silent training at that one."""
    program = load(positional, device="host")
    x, labels = np.ones((4, 32), np.float32), np.arange(4)
    trainer = Trainer(program)
    trainer.step(x, np.array([0]), labels)
    with pytest.raises(ContractError, match="input_1: expected 0 as element 0, received 5"):
        trainer.step(x, np.array([5]), labels)
    with pytest.raises(ContractError, match="a trainer keeps the integers"):
        trainer.forward(x, np.array([5]))
    assert 1 == trainer.steps


def test_notes_of_the_caller_are_kept(tmp_path: Path) -> None:
    """Whatever JSON holds comes back; anything else is a sentence, and the old file stays."""
    trainer = new_trainer()
    trainer.notes["epoch"] = 3
    trainer.notes["losses"] = [0.1, float("inf")]
    trainer.checkpoint(tmp_path)
    kept = dict(trainer.notes)
    deep: list[Any] = []
    for _ in range(10**5):
        deep = [deep]
    for notes in ({"array": np.zeros(3)}, {"a": {1: "x", "1": "y"}}, {"deep": deep}, None, [1]):
        trainer.notes = cast("Any", notes)
        with pytest.raises(ContractError, match="notes: expected a dict of what JSON can hold"):
            trainer.checkpoint(tmp_path)
    trainer.notes = {"long": "x" * (100 << 20)}
    with pytest.raises(NybbleError, match="names and metadata take 1048"):
        trainer.checkpoint(tmp_path)
    trainer.notes, trainer.rng = kept, np.random.Generator(np.random.MT19937(3))
    with pytest.raises(ContractError, match="rng: expected what numpy"):
        trainer.checkpoint(tmp_path)
    resumed = Trainer.resume(tmp_path, program_of(mlp()))
    assert {"epoch": 3, "losses": [0.1, float("inf")]} == resumed.notes


def test_loss_function_is_asked_for_again(tmp_path: Path) -> None:
    """A checkpoint cannot hold a function, and says so."""

    def loss(b: GraphBuilder, outputs: tuple[Value, ...], labels: Value) -> Value:
        return b.math.mean(b.math.square(b.math.sub(outputs[0], labels)))

    target = np.zeros((8, 12), np.float32)
    trainer = Trainer(program_of(mlp()), loss)
    trainer.step(batch()[0], target)
    trainer.checkpoint(tmp_path)
    with pytest.raises(ContractError, match="pass it again"):
        Trainer.resume(tmp_path, program_of(mlp()))
    resumed = Trainer.resume(tmp_path, program_of(mlp()), loss=loss)
    assert float(trainer.step(batch()[0], target)) == float(resumed.step(batch()[0], target))


def test_checkpoint_of_another_program_is_refused(tmp_path: Path) -> None:
    """Neither resumed with it, nor overwritten by it."""
    new_trainer().checkpoint(tmp_path)
    other = program_of(mlp(), data=b"another program")
    with pytest.raises(ContractError, match="of another program"):
        Trainer.resume(tmp_path, other)
    with pytest.raises(ContractError, match="choose another folder"):
        Trainer(other).checkpoint(tmp_path)


def test_missing_checkpoint_is_a_sentence(tmp_path: Path) -> None:
    """An empty folder holds none."""
    with pytest.raises(NybbleError, match="holds no checkpoint"):
        Trainer.resume(tmp_path)


@pytest.mark.parametrize("cut", [0, 5, 100, -1])
def test_damaged_checkpoint_is_refused(tmp_path: Path, cut: int) -> None:
    """A file that was cut is told, whatever is left of it."""
    new_trainer().checkpoint(tmp_path)
    file = tmp_path / "checkpoint.safetensors"
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(ProgramFormatError, match="not a whole safetensors file"):
        Trainer.resume(tmp_path, program_of(mlp()))


def test_full_disk_leaves_the_previous_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error in the middle of writing is a sentence, and the old file is whole."""
    trainer = new_trainer()
    losses(trainer, 2)
    trainer.checkpoint(tmp_path)
    before = (tmp_path / "checkpoint.safetensors").read_bytes()
    losses(trainer, 2)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NybbleError, match="No space left on device"):
        trainer.checkpoint(tmp_path)
    assert before == (tmp_path / "checkpoint.safetensors").read_bytes()
    assert {"checkpoint.safetensors", "program.pte"} == {p.name for p in tmp_path.iterdir()}


WRITER = """
import itertools, sys
import numpy as np
from nybble.training.checkpoint import contents_digest
from nybble.training.files import safetensors_bytes, write_whole
for number in itertools.count():
    tensor = np.full(1 << 18, number, np.int32)
    write_whole(sys.argv[1], safetensors_bytes({"x": tensor}, {"number": str(number)}))
    print(number, flush=True)
"""


@pytest.mark.parametrize("delay", [0.0, 0.013, 0.031, 0.057])
def test_killed_writer_leaves_a_whole_file(tmp_path: Path, delay: float) -> None:
    """Killed at any moment, the file is one of those that were written, from end to end."""
    file = tmp_path / "checkpoint.safetensors"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(file)], stdout=subprocess.PIPE, env=environment
    )
    assert writer.stdout is not None
    for _ in range(3):
        writer.stdout.readline()
    time.sleep(delay)
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    tensors, metadata = read_safetensors(file)
    assert int(metadata["number"]) >= 2
    assert (tensors["x"] == int(metadata["number"])).all()


def _rewrite(file: Path, change: Callable[[dict[str, Array], dict[str, Any]], object]) -> None:
    states, metadata = read_safetensors(file)
    settings = json.loads(metadata["settings"])
    change(states, settings)
    metadata["settings"] = json.dumps(settings)
    metadata["contents"] = contents_digest(states, metadata["settings"])
    write_whole(file, safetensors_bytes(states, metadata))


@pytest.mark.parametrize(
    "change",
    [
        lambda states, _: states.pop("applied"),
        lambda states, _: states.pop("forward.linear_0.m"),
        lambda states, _: states.update(other=np.zeros(1, np.float32)),
        lambda _, settings: settings.pop("rng"),
        lambda _, settings: settings.update(rng={"state": 1}),
        lambda _, settings: settings.update(surprise=1),
        lambda _, settings: settings.update(labels=None),
        lambda _, settings: settings.update(integers=[[0, 10**9, 1]]),
        lambda _, settings: settings.update(integers=[[7, 0, 1]]),
        lambda _, settings: settings.update(notes=[]),
    ],
    ids=["no count", "no moment", "a state more", "no rng", "another rng", "a setting more",
         "no labels", "no such element", "no such input", "no notes"],
)  # fmt: skip
def test_incomplete_checkpoint_is_refused(tmp_path: Path, change: Any) -> None:
    """A whole file that lacks something, or has more, is not resumed with zeros in its place."""
    new_trainer().checkpoint(tmp_path)
    _rewrite(tmp_path / "checkpoint.safetensors", change)
    with pytest.raises(ProgramFormatError, match=r"checkpoint\.safetensors (is no|does not hold)"):
        Trainer.resume(tmp_path, program_of(mlp()))


@pytest.mark.parametrize("place", [0.3, 0.6, 0.9])
def test_one_changed_bit_is_refused(tmp_path: Path, place: float) -> None:
    """In moments or latents it would be no error, but another training."""
    new_trainer().checkpoint(tmp_path)
    file = tmp_path / "checkpoint.safetensors"
    content = bytearray(file.read_bytes())
    content[int(place * len(content))] ^= 1
    file.write_bytes(content)
    with pytest.raises(ProgramFormatError, match=r"checkpoint\.safetensors is no"):
        Trainer.resume(tmp_path, program_of(mlp()))


def test_deep_metadata_is_no_recursion(tmp_path: Path) -> None:
    """JSON of any depth ends in a sentence."""
    new_trainer().checkpoint(tmp_path)
    file = tmp_path / "checkpoint.safetensors"
    states, metadata = read_safetensors(file)
    metadata["settings"] = "[" * 10**5 + "]" * 10**5
    metadata["contents"] = contents_digest(states, metadata["settings"])
    write_whole(file, safetensors_bytes(states, metadata))
    with pytest.raises(ProgramFormatError, match="is no checkpoint"):
        Trainer.resume(tmp_path, program_of(mlp()))
    text = b'{"a":' * 10**5 + b"1" + b"}" * 10**5
    file.write_bytes(struct.pack("<Q", len(text)) + text)
    with pytest.raises(ProgramFormatError, match="is not a whole safetensors file"):
        read_safetensors(file)


def test_steps_are_numbered_on_after_those_that_were_not_applied(tmp_path: Path) -> None:
    """A fault after resuming names the step that it has in the whole training."""
    first = new_trainer(on_nonfinite="count")
    inputs, labels = batch(0)
    for values in (inputs, np.full_like(inputs, np.nan), inputs):
        first.step(values, labels)
    first.checkpoint(tmp_path)
    second = Trainer.resume(tmp_path, program_of(mlp()))
    assert (2, 1) == (second.steps, second.skipped)
    assert 4 == first.step(inputs, labels).number == second.step(inputs, labels).number


def test_missing_copy_of_the_program_is_written_again(tmp_path: Path) -> None:
    """The checkpoint itself says that it is of the same program."""
    new_trainer().checkpoint(tmp_path)
    (tmp_path / "program.pte").unlink()
    new_trainer().checkpoint(tmp_path)
    assert b"made in python" == (tmp_path / "program.pte").read_bytes()


def test_leftovers_of_killed_writers_are_removed(tmp_path: Path) -> None:
    """Each is as large as a checkpoint: the next one takes their place."""
    new_trainer().checkpoint(tmp_path)
    for name in ("checkpoint.safetensors", "program.pte"):
        (tmp_path / f".{name}.abcd1234").write_bytes(b"part")
    new_trainer().checkpoint(tmp_path)
    assert {"checkpoint.safetensors", "program.pte"} == {p.name for p in tmp_path.iterdir()}


def test_interrupted_write_leaves_nothing_beside_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while a file is flushed: the old content, and no part of the new."""
    write_whole(tmp_path / "a.pte", b"old")

    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "a.pte", b"new")
    assert [b"old"] == [p.read_bytes() for p in tmp_path.iterdir()]


def test_safetensors_survive_a_round_trip(tmp_path: Path) -> None:
    """Every element type and shape, empty and scalar ones too, comes back as it was."""
    tensors: dict[str, Array] = {
        "f": np.array([1.5, np.nan, -np.inf], np.float32),
        "i": np.arange(6, dtype=np.int32).reshape(2, 3),
        "u": np.arange(256, dtype=np.uint8),
        "scalar": np.asarray(2**40, np.int64),
        "empty": np.zeros((0, 3), np.float32),
    }
    write_whole(tmp_path / "t.safetensors", safetensors_bytes(tensors, {"a": "ü"}))
    found, metadata = read_safetensors(tmp_path / "t.safetensors")
    assert {"a": "ü"} == metadata
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(tensor, found[name])
        assert tensor.dtype == found[name].dtype
