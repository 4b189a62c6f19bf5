"""What a caller may get wrong: a sentence, and nothing that goes on with other values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nybble
from nybble.devices.base import Pending
from nybble.errors import ContractError, DeviceLostError, NybbleError
from nybble.graph import Graph, GraphBuilder, Value
from nybble.training import Trainer
from nybble.training.pending import Steps

from .conftest import linear, mlp, program_of
from .test_trainer import batch


@pytest.mark.parametrize(
    ("option", "value"),
    [("optimizer", "adam"), ("schedule", "cosine"), ("memory_budget", "1MB"), ("rank", 1.5)],
)
def test_option_of_another_kind_is_named(option: str, value: Any) -> None:
    """Before anything is planned, with what was received."""
    with pytest.raises(ContractError, match=f"{option}: expected .*, received {value!r}"):
        Trainer(program_of(mlp()), mode="adapter", **{option: value})


def test_closed_trainer_does_not_start_again() -> None:
    """A step after close would train the program's first weights, not those of now."""
    trainer = Trainer(program_of(mlp()))
    trainer.step(*batch(0))
    trainer.close()
    for use in (lambda: trainer.step(*batch(0)), lambda: trainer.state("applied")):
        with pytest.raises(NybbleError, match="the trainer is closed"):
            use()


def test_evaluation_over_no_batch_is_an_error() -> None:
    """A loss of 0 would look like a perfect program."""
    with pytest.raises(ContractError, match="at least one batch"):
        Trainer(program_of(mlp())).evaluate([])


def test_negative_labels_of_64_bits_are_ignored_too() -> None:
    """None becomes a class when it is converted to int32."""
    x, _ = batch(0)
    trainer = Trainer(program_of(mlp()))
    assert 0.0 == float(trainer.step(x, np.full(8, 3 - 2**32)))


def test_labels_of_a_function_must_fit_int32() -> None:
    """A function may give any number a meaning, so none is changed silently."""

    def loss(b: GraphBuilder, outputs: tuple[Value, ...], _: Value) -> Value:
        return b.math.mean(outputs[0])

    with pytest.raises(ContractError, match="32 bits, received 4294967299"):
        Trainer(program_of(mlp()), loss).step(batch(0)[0], np.full(8, 3 + 2**32))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros((8, 12), np.int64), r"one class a row.*\[8\], received \[8, 12\].*argmax\(-1\)"),
        (np.zeros((8, 1), np.int64), r"one class a row.*\[8\], received \[8, 1\].*reshape\(8\)"),
        (np.zeros((2, 3), np.int64), r"one class a row.*\[8\], received \[2, 3\]"),
        (
            np.zeros(5, np.int64),
            r"shape \[8\], received \[5\]; the program was exported for this ba",
        ),
    ],
)
def test_labels_of_another_form_are_told_what_the_loss_takes(labels: Any, message: str) -> None:
    """Only where the rows differ is it the batch for which the program was exported."""
    with pytest.raises(ContractError, match=message) as caught:
        Trainer(program_of(mlp())).step(batch(0)[0], labels)
    assert ("this batch alone" in str(caught.value)) == (labels.ndim == 1)


def test_values_of_another_form_are_told_what_the_loss_takes() -> None:
    """The loss mse takes the output's shape, whatever the batch."""
    with pytest.raises(
        ContractError, match=r"a value for each .*\[8, 12\], received \[8\]"
    ) as caught:
        Trainer(program_of(mlp()), "mse").step(batch(0)[0], np.zeros(8, np.float32))
    assert "this batch alone" not in str(caught.value)


@pytest.mark.parametrize(
    ("count", "message"), [(1, "held 1 value that is NaN"), (2, "held 2 values that are NaN")]
)
def test_values_that_are_not_finite_are_counted_in_words_that_fit(count: int, message: str) -> None:
    """One value is, several are."""

    class Faulty:
        """A step whose loss held that many."""

        def result(self) -> list[Any]:
            """The loss, then the slot and the count of the fault."""
            return [np.float32(np.nan), np.array([0, count], np.int32)]

    steps = Steps(("the loss",), "count", 0)
    steps.started(Faulty())
    steps.settle()
    assert message in steps.faults[0]


FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("float_cnn", "1 linear call in float32 .* inside an LSTM"),
        ("conv3x3_relu", "no linear layer at all, and convolutions .* no 4-bit form"),
        ("q4_embedding", "4-bit embedding.* stays frozen"),
    ],
)
def test_a_program_without_4_bit_layers_is_told_what_it_lacks(name: str, message: str) -> None:
    """Not to export again with quantize="int4" where that would change nothing."""
    with pytest.raises(ContractError, match=f"nothing to train.*{message}"):
        Trainer(nybble.load(FIXTURES / f"{name}.pte", device="host"))


@pytest.mark.export
@pytest.mark.device
@pytest.mark.parametrize("device", ["host", "webgpu", "vulkan"])
def test_batch_of_another_size_is_refused_by_a_dynamic_program(device: str, tmp_path: Path) -> None:
    """The plan is for one size: fewer rows would be filled up with those of the batch before."""
    torch = pytest.importorskip("torch")
    from nybble.export import export

    path = tmp_path / "dynamic.pte"
    sizes = ({0: torch.export.Dim("rows", min=1, max=8)},)
    example = (torch.randn(4, 32),)
    module = torch.nn.Sequential(torch.nn.Linear(32, 12)).eval()
    export(module, example, path, quantize="int4", group_size=32, dynamic_shapes=sizes)
    trainer = Trainer(nybble.load(path, device=device))
    x = np.ones((8, 32), np.float32)
    assert 0 < float(trainer.step(x, np.zeros(8, int)))
    for use in (lambda: trainer.step(x[:5], np.zeros(8, int)), lambda: trainer.forward(x[:5])):
        with pytest.raises(ContractError, match=r"expected \[8, 32\], received \[5, 32\]"):
            use()


class Lost:
    """A run on a device that is gone."""

    def result(self) -> list[Any]:
        """Fails, every time."""
        raise DeviceLostError("the device is gone")


def test_loss_of_a_lost_device_is_never_a_number() -> None:
    """Asked for again, it fails again."""
    pending: Pending = Lost()
    steps = Steps(("the loss",), "error", 0)
    loss = steps.started(pending)
    for _ in range(2):
        with pytest.raises(DeviceLostError):
            float(loss)
    assert 0 == steps.applied


def two_heads() -> Graph:
    """A layer before two heads, each an output."""
    b = GraphBuilder("forward")
    rng = np.random.default_rng(3)
    trunk = linear(b, b.input("input_0", "float32", (8, 16)), 24, 8, rng)
    return b.finish([linear(b, trunk, 12, 8, rng), linear(b, trunk, 4, 8, rng)])


@pytest.mark.parametrize("mode", ["latent", "adapter"])
def test_loss_that_ignores_the_outputs_is_refused(mode: Any) -> None:
    """It would train nothing: an error before the first step, and the weights are as they were."""

    def loss(b: GraphBuilder, _: tuple[Value, ...], labels: Value) -> Value:
        return b.math.mean(b.math.square(labels))

    trainer = Trainer(program_of(mlp()), loss, mode=mode)
    with pytest.raises(
        ContractError,
        match=r"does not depend on forward\.linear_0, forward\.linear_1, .* compute it from",
    ):
        trainer.step(batch(0)[0], np.ones(8, np.float32))
    assert 0 == trainer.steps


def test_loss_through_integers_alone_is_refused() -> None:
    """No gradient passes a conversion to integers, so nothing would be trained."""

    def loss(b: GraphBuilder, outputs: tuple[Value, ...], _: Value) -> Value:
        best = b.call("aten.argmax.default", x=outputs[0], dim=1, keepdim=False)
        return b.math.mean(
            b.call("dim_order_ops._to_dim_order_copy.default", x=best, out_dtype="float32")
        )

    trainer = Trainer(program_of(mlp()), loss)
    with pytest.raises(ContractError, match="the loss does not depend on"):
        trainer.step(batch(0)[0], np.ones(8, np.float32))


@pytest.mark.parametrize("mode", ["latent", "adapter"])
def test_layers_on_no_path_to_the_loss_are_named(mode: Any) -> None:
    """Weight decay alone would change the second head: it is left out by name, or refused."""
    with pytest.raises(
        ContractError,
        match=r"depend on forward\.linear_2, .*"
        r"trainable=\['forward\.linear_0', 'forward\.linear_1'\]",
    ):
        Trainer(program_of(two_heads()), mode=mode)
    trainer = Trainer(program_of(two_heads()), mode=mode, trainable=["*_0", "*_1"])
    trainer.step(*batch(0))
    assert 1 == trainer.steps
