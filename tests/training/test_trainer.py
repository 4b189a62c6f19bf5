"""The trainer: steps, evaluation, faults, memory, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nybble.contract import Array
from nybble.devices import NullDevice
from nybble.errors import (
    ContractError,
    NybbleError,
    OutOfDeviceMemoryError,
    UnsupportedProgramError,
)
from nybble.graph import GraphBuilder, Value
from nybble.plan import Dispatch
from nybble.program import Method, Program
from nybble.training import AdamW, Constant, NonFiniteError, Trainer

from .conftest import linear, mlp, program_of


def batch(seed: int = 0, rows: int = 8, features: int = 16, classes: int = 12) -> tuple[Any, Any]:
    """Inputs and labels."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, features)).astype(np.float32)
    return x, rng.integers(0, classes, rows)


def losses(trainer: Trainer, count: int) -> list[float]:
    """The losses of so many steps on batches that differ."""
    return [float(loss) for loss in [trainer.step(*batch(seed)) for seed in range(count)]]


def test_training_lowers_the_loss_of_what_it_sees() -> None:
    """Sixty steps on one batch learn it by heart."""
    trainer = Trainer(program_of(mlp()), optimizer=AdamW(lr=1e-2))
    before = trainer.evaluate([batch()])
    for _ in range(60):
        trainer.step(*batch())
    after = trainer.evaluate([batch()])
    assert before.loss > 2
    assert after.loss < 0.2
    assert after.accuracy == 1.0
    assert trainer.steps == 60


@pytest.mark.device
@pytest.mark.parametrize("device", ["webgpu", "vulkan"])
def test_device_takes_the_steps_of_the_host(device: str) -> None:
    """Losses of twenty steps agree between the references and the shaders."""
    expected = losses(Trainer(program_of(mlp()), optimizer=AdamW(lr=1e-2)), 20)
    actual = losses(Trainer(program_of(mlp(), device), optimizer=AdamW(lr=1e-2)), 20)
    np.testing.assert_allclose(actual, expected, rtol=1e-4)


def test_a_step_packs_no_codes_again() -> None:
    """Forward, backward and re-quantization share one layout: nothing is converted or copied."""
    device = NullDevice()
    states = device.new_states()
    program = Program(device, [Method(device, mlp(), "error", states)], states)
    plan = Trainer(program).engine.plan
    names = [call.operator.name for call in plan.calls]
    assert "nybble.relayout.default" not in names
    assert 2 == names.count("et_vk.q4gsw_requant.default")
    assert all(isinstance(step, Dispatch) for step in plan.steps)
    copied = [c for c in plan.calls if c.operator.name == "nybble.copy.default"]
    assert [(2,)] == [call.outputs[0].shape for call in copied], "only the fault's two words"
    layouts = {s.place.layout.name for s in plan.states if s.name.endswith(".codes")}
    assert {"w4x8"} == layouts


def test_codes_are_the_rounded_latents_after_every_step() -> None:
    """The codes of a step are those that the latents of that step round to."""
    trainer = Trainer(program_of(mlp()), optimizer=AdamW(lr=3e-2))
    first = trainer.layers[0]
    assert np.array_equal(first.codes, trainer.state("forward.linear_0.codes"))
    losses(trainer, 5)
    latent = trainer.state("forward.linear_0.latent")
    steps = np.clip(np.rint(latent / np.repeat(first.scales.T, 8, 1)), -8, 7)
    np.testing.assert_array_equal(
        trainer.layers[0].values(trainer.state("forward.linear_0.codes")),
        (steps * np.repeat(first.scales.T, 8, 1)).astype(np.float32),
    )
    assert not np.array_equal(first.codes, trainer.state("forward.linear_0.codes"))


def test_only_layers_that_a_glob_names_are_trained() -> None:
    """The other layer keeps no state and its codes."""
    trainer = Trainer(program_of(mlp()), trainable="*linear_1")
    losses(trainer, 2)
    assert ["forward.linear_1"] == [layer.name for layer in trainer.layers]
    assert not any("linear_0" in name for name in trainer.engine.states.names())


def test_glob_that_matches_nothing_lists_the_layers() -> None:
    """The error names what exists, with shapes."""
    with pytest.raises(ContractError, match=r"forward.linear_0 \[24, 16\], forward.linear_1"):
        Trainer(program_of(mlp()), trainable="encoder.*")


def test_program_without_four_bit_layers_is_refused() -> None:
    """A program without a linear layer has nothing to train, however it is exported."""
    b = GraphBuilder("forward")
    x = b.input("input_0", "float32", (2, 3))
    program = program_of(b.finish([b.call("aten.relu.default", x=x)]))
    with pytest.raises(ContractError, match="it has no linear layer at all"):
        Trainer(program)


def test_every_operator_without_gradient_is_named_at_once() -> None:
    """Two of them between a layer and the loss are told together, before any step."""
    b = GraphBuilder("forward")
    value = linear(b, b.input("input_0", "float32", (2, 16)), 16, 8, np.random.default_rng(0))
    for name in ("aten.floor.default", "aten.hardshrink.default"):
        value = b.call(name, x=value)
    with pytest.raises(UnsupportedProgramError) as caught:
        Trainer(program_of(b.finish([value])))
    assert 2 == len(caught.value.calls)
    assert "aten.floor.default (python) has no gradient" in str(caught.value)


@pytest.mark.parametrize("beside", [False, True])
def test_rounding_to_codes_on_the_way_is_named(*, beside: bool) -> None:
    """Also where another way leads past it: a gradient that ends unseen there would be wrong."""
    b, rng = GraphBuilder("forward"), np.random.default_rng(0)
    value = linear(b, b.input("input_0", "float32", (2, 16)), 16, 8, rng)
    codes = {"scale": 0.1, "zero_point": 0, "quant_min": -128, "quant_max": 127}
    family = "quantized_decomposed"
    rounded = b.call(f"{family}.quantize_per_tensor.default", x=value, **codes)
    rounded = b.call(f"{family}.dequantize_per_tensor.default", x=rounded, **codes)
    both = b.math.add(value, rounded) if beside else rounded
    program = program_of(b.finish([linear(b, both, 8, 8, rng)]))
    with pytest.raises(UnsupportedProgramError) as caught:
        Trainer(program)
    assert "quantize_per_tensor.default (python) has no gradient: activations are" in str(
        caught.value
    )
    Trainer(program, trainable="*_1")


def test_operators_before_the_trained_layers_need_no_gradient() -> None:
    """What lies upstream of every trained layer is not differentiated."""
    b = GraphBuilder("forward")
    value = b.call("aten.floor.default", x=b.input("input_0", "float32", (8, 16)))
    graph = b.finish([linear(b, value, 12, 8, np.random.default_rng(0))])
    assert 2 == len(losses(Trainer(program_of(graph)), 2))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda x, y: (x, y[:5]), r"labels: expected shape \[8\], received \[5\]"),
        (lambda x, y: (x, np.where(y == y[3], 12, y)), r"labels: 12 at \[\d\] is no class"),
        (lambda x, y: (x, y.astype(np.float32)), r"int32, received float32; .*\.astype\('int32'\)"),
        (lambda x, y: (x[:, :5], y), "input_0: wrong shape"),
        (lambda x, y: (y,), "a batch is input_0"),
    ],
)
def test_batch_that_does_not_fit_is_refused(change: Any, sentence: str) -> None:
    """Wrong shapes, types and classes are sentences, and no step is taken."""
    trainer = Trainer(program_of(mlp()))
    with pytest.raises(ContractError, match=sentence):
        trainer.step(*change(*batch()))
    assert trainer.steps == 0


def test_ignored_labels_do_not_count() -> None:
    """A row with a negative label changes neither loss nor gradient."""
    x, labels = batch()
    labels[5:] = -100
    other = x.copy()
    other[5:] = 7
    one, two = (Trainer(program_of(mlp()), optimizer=AdamW(lr=1e-2)) for _ in range(2))
    assert float(one.step(x, labels)) == float(two.step(other, labels))
    np.testing.assert_array_equal(
        one.state("forward.linear_1.latent"), two.state("forward.linear_1.latent")
    )
    assert 5 == one.evaluate([(x, labels)]).count


def test_mse_and_a_function_give_one_loss() -> None:
    """The mean squared error by name and as a function of the caller's train alike."""

    def squares(b: GraphBuilder, outputs: tuple[Value, ...], labels: Value) -> Value:
        return b.math.mean(b.math.square(b.math.sub(outputs[0], labels)))

    x, _ = batch()
    target = np.random.default_rng(4).standard_normal((8, 12)).astype(np.float32)
    named, own = Trainer(program_of(mlp()), "mse"), Trainer(program_of(mlp()), squares)
    for _ in range(3):
        expected, actual = float(named.step(x, target)), float(own.step(x, target))
        assert actual == pytest.approx(expected, rel=1e-6)
    assert own.evaluate([(x, target)]).accuracy is None


@pytest.mark.parametrize(
    ("loss", "sentence"),
    [
        ("hinge", "expected 'cross_entropy', 'mse' or a function"),
        (lambda b, outputs, labels: outputs[0], "must return a float32 scalar"),
    ],
)
def test_loss_that_is_none_is_refused(loss: Any, sentence: str) -> None:
    """Unknown names, and functions that return no scalar."""
    with pytest.raises(ContractError, match=sentence):
        Trainer(program_of(mlp()), loss).step(*batch())


def _states(trainer: Trainer) -> dict[str, Array]:
    return {name: trainer.state(name) for name in trainer.engine.states.names()}


@pytest.mark.device
@pytest.mark.parametrize("device", ["host", "webgpu", "vulkan"])
def test_step_that_is_not_finite_is_not_applied(device: str) -> None:
    """A NaN in a batch leaves every state as it was, and is told with where it arose."""
    trainer = Trainer(program_of(mlp(), device), optimizer=AdamW(lr=1e-2))
    losses(trainer, 2)
    before = _states(trainer)
    x, labels = batch()
    x[3, 4] = np.nan
    loss = trainer.step(x, labels)
    with pytest.raises(NonFiniteError, match="step 3: the loss held 1 value that is"):
        float(loss)
    after = _states(trainer)
    for name, content in before.items():
        np.testing.assert_array_equal(content, after[name], err_msg=name)
    assert 2 == trainer.steps


def test_fault_in_a_gradient_alone_is_named() -> None:
    """A finite loss whose gradient overflows names the layer whose gradient it is."""

    def steep(b: GraphBuilder, outputs: tuple[Value, ...], _: Value) -> Value:
        huge = b.math.mul(outputs[0], 1e-30)
        return b.math.mean(b.math.mul(b.math.mul(huge, 3e38), 3e30))

    trainer = Trainer(program_of(mlp()), steep, on_nonfinite="count")
    x, labels = batch()
    trainer.step(x * 1e-30, labels)
    trainer.step(x * 1e9, labels)
    assert trainer.steps + trainer.skipped == 2
    assert any("the gradient of forward.linear_" in fault for fault in trainer.faults)


def test_counted_faults_do_not_move_the_schedule() -> None:
    """Steps after a fault are those of a run that never saw it."""
    trainer = Trainer(
        program_of(mlp()), optimizer=AdamW(lr=1e-2), schedule=Constant(warmup=9),
        on_nonfinite="count",
    )  # fmt: skip
    clean = Trainer(program_of(mlp()), optimizer=AdamW(lr=1e-2), schedule=Constant(warmup=9))
    x, labels = batch(77)
    bad = np.full_like(x, np.inf)
    for seed in range(6):
        trainer.step(bad, labels)
        trainer.step(*batch(seed))
        clean.step(*batch(seed))
    for name, content in _states(clean).items():
        np.testing.assert_array_equal(content, trainer.state(name), err_msg=name)
    assert (6, 6) == (trainer.steps, trainer.skipped)
    assert all("the loss held" in fault for fault in trainer.faults)


def test_unfetched_faults_are_raised_within_the_steps_in_flight() -> None:
    """Nobody fetches a loss, and the error comes all the same."""
    trainer = Trainer(program_of(mlp()))
    x, labels = batch()
    trainer.step(np.full_like(x, np.nan), labels)
    for _ in range(15):
        trainer.step(x, labels)
    with pytest.raises(NonFiniteError):
        trainer.step(x, labels)


def deep(layers: int = 16) -> Any:
    """A graph whose activations are most of what a step holds."""
    return mlp(batch=256, sizes=[16] + [24] * layers + [12])


def test_memory_budget_recomputes_and_changes_no_bit() -> None:
    """With two thirds of the memory for activations the losses are the same to the bit."""

    def trainer_with(budget: int | None) -> Trainer:
        return Trainer(program_of(deep()), optimizer=AdamW(lr=1e-2), memory_budget=budget)

    free = trainer_with(None)
    whole = free.engine.plan.activation_bytes
    tight = trainer_with(whole * 2 // 3)
    assert tight.engine.plan.activation_bytes <= whole * 2 // 3
    assert len(tight.engine.plan.calls) > len(free.engine.plan.calls)
    batches = [batch(seed, 256) for seed in range(3)]
    expected = [float(free.step(*b)) for b in batches]
    assert expected == [float(tight.step(*b)) for b in batches]


def test_budget_that_nothing_fits_says_what_is_needed() -> None:
    """The error has the least number of bytes."""
    with pytest.raises(OutOfDeviceMemoryError, match="needs at least"):
        Trainer(program_of(deep()), memory_budget=1000)


def test_odd_rows_and_padded_columns_are_trained() -> None:
    """Rows of 11 outputs, 10 inputs in rows of 8 bytes, groups that end inside: all train."""
    b = GraphBuilder("forward")
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 256, (11, 8)).astype(np.uint8)
    scales = rng.uniform(0.01, 0.1, (3, 12)).astype(np.float32)
    x = b.input("input_0", "float32", (8, 10))
    y = b.call(
        "et_vk.linear_q4gsw.default", x=x, weight=codes, scales=scales, group_size=4, bias=None
    )
    trainer = Trainer(program_of(b.finish([y])), optimizer=AdamW(lr=3e-2))
    values = [float(trainer.step(*batch(0, 8, 10, 11))) for _ in range(30)]
    assert values[-1] < 0.7 * values[0]
    assert (11, 16) == trainer.state("forward.linear_0.latent").shape
    assert not trainer.state("forward.linear_0.latent")[:, 10:].any()


def test_saving_into_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """A misspelt folder is not made."""
    trainer = Trainer(program_of(mlp()), "mse")
    with pytest.raises(NybbleError, match="make it"):
        trainer.save(tmp_path / "missing" / "tuned.pte")
    assert not (tmp_path / "missing").exists()
