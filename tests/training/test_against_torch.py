"""Rows of the table, the optimizer and whole training runs against torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nybble.contract import REGISTRY, Array
from nybble.testing import run_expected
from nybble.training import AdamW, Cosine, Trainer
from nybble.training.optimizer import Constant, hyper_table

from .cases import CASES, GradientCase
from .conftest import mlp, program_of
from .test_gradients import gradients_of

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.export


def _outside(case: GradientCase) -> bool:
    """Whether indices leave their axis, which torch refuses and nybble clamps."""
    index = case.arguments.get("index")
    return isinstance(index, np.ndarray) and bool((index < 0).any())


_TORCH_CASES = [
    case
    for case in CASES
    if case.operator.startswith("aten.") and "_to_copy" not in case.operator and not _outside(case)
]


def torch_gradients(case: GradientCase, weights: list[Array]) -> dict[str, Array]:
    """What autograd gives for the same call in double."""
    _, name, overload = case.operator.split(".")
    function = getattr(getattr(torch.ops.aten, name), overload)
    leaves = {}
    arguments = []
    keywords = {}
    for argument in REGISTRY[case.operator].serialized:
        given = case.arguments.get(argument.name, argument.given_default)
        if isinstance(given, np.ndarray):
            wide = {"i": torch.int64, "b": torch.bool}.get(given.dtype.kind, torch.float64)
            leaves[argument.name] = given = torch.tensor(given, dtype=wide)
            given.requires_grad_(argument.name not in case.fixed)
        if argument.name in ("alpha", "beta", "approximate", "implicit"):
            keywords[argument.name] = given
        elif not argument.ignored:
            arguments.append(given)
    if case.operator == "aten._native_batch_norm_legit_no_training.default":
        arguments = arguments[:7]
    results = function(*arguments, **keywords)
    results = results if isinstance(results, tuple) else (results,)
    total = sum(
        (results[i] * torch.tensor(w, dtype=torch.float64)).sum()
        for i, w in zip(case.results, weights, strict=True)
    )
    total.backward()
    return {n: leaf.grad.numpy() for n, leaf in leaves.items() if leaf.grad is not None}


@pytest.mark.parametrize(
    "case", _TORCH_CASES, ids=[f"{i}-{c.name}" for i, c in enumerate(_TORCH_CASES)]
)
def test_gradient_equals_autograds(case: GradientCase) -> None:
    """Rows agree with torch's derivatives in double, to float32's precision."""
    rng = np.random.default_rng(5)
    results = run_expected(case.operator, case.arguments)
    weights = [rng.standard_normal(results[i].shape).astype(np.float32) for i in case.results]
    actual = gradients_of(case, weights)
    expected = torch_gradients(case, weights)
    assert expected.keys() == actual.keys()
    for name, gradient in expected.items():
        scale = max(1, np.abs(gradient).max(initial=0))
        np.testing.assert_allclose(actual[name], gradient, rtol=1e-5, atol=2e-6 * scale)


def test_adamw_is_torchs() -> None:
    """Fifty steps with bias correction, decay and a moving rate end where torch's end."""
    rng = np.random.default_rng(1)
    optimizer, schedule = AdamW(lr=1e-2, weight_decay=0.1), Cosine(steps=50, warmup=5)
    start = rng.standard_normal(1000).astype(np.float32)
    theirs = torch.tensor(start.copy(), requires_grad=True)
    reference = torch.optim.AdamW([theirs], lr=1e-2, weight_decay=0.1)
    ours, m, v = start, np.zeros_like(start), np.zeros_like(start)
    well = np.array([-1, 0], np.int32)
    for step in range(50):
        gradient = rng.standard_normal(1000).astype(np.float32) * np.float32(10.0 ** (step % 5))
        hyper = hyper_table(optimizer, schedule, step, 1)[0]
        arguments = {"param": ours, "m": m, "v": v, "grad": gradient, "hyper": hyper, "fault": well}
        ours, m, v = run_expected("nybble.adamw.default", arguments)
        reference.param_groups[0]["lr"] = 1e-2 * schedule.factor(step + 1)
        theirs.grad = torch.tensor(gradient)
        reference.step()
        np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-6, atol=1e-6)


class StraightThrough:
    """The same network in plain torch: latents behind rounded weights, float32 throughout."""

    def __init__(self, trainer: Trainer, lr: float) -> None:
        self.layers = trainer.layers
        self.latents = [
            torch.tensor(layer.values(layer.codes), requires_grad=True) for layer in self.layers
        ]
        self.scales = [
            torch.tensor(np.repeat(layer.scales.T, layer.group_size, 1)) for layer in self.layers
        ]
        self.optimizer = torch.optim.AdamW(self.latents, lr=lr, weight_decay=0.01)

    def codes(self, index: int) -> Any:
        """The rounded latents of a layer, -8 to 7."""
        return torch.round(self.latents[index] / self.scales[index]).clamp(-8, 7)

    def step(self, x: Array, labels: Array) -> float:
        """One step; the loss before it."""
        value = torch.tensor(x)
        for index, layer in enumerate(self.layers):
            latent = self.latents[index]
            rounded = self.codes(index) * self.scales[index]
            weight = latent + (rounded - latent).detach()
            bias = torch.tensor(layer.call.arguments["bias"].constant)
            value = torch.nn.functional.linear(value, weight, bias)
            if index + 1 < len(self.layers):
                value = torch.relu(value)
        loss = torch.nn.functional.cross_entropy(value, torch.tensor(labels))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return float(loss)


@pytest.mark.parametrize("device", ["host", "webgpu", "vulkan"])
def test_training_is_that_of_plain_torch(device: str) -> None:
    """The losses of fifty steps agree within 1e-3, and 99.9% of the codes after them."""
    rng = np.random.default_rng(8)
    program = program_of(mlp(batch=32, sizes=(16, 64, 64, 12)), device)
    trainer = Trainer(program, optimizer=AdamW(lr=1e-3), schedule=Constant())
    reference = StraightThrough(trainer, 1e-3)
    for _ in range(50):
        x = rng.standard_normal((32, 16)).astype(np.float32)
        labels = rng.integers(0, 12, 32)
        expected = reference.step(x, labels)
        assert float(trainer.step(x, labels)) == pytest.approx(expected, rel=1e-3)
    same, total = 0, 0
    for index, layer in enumerate(trainer.layers):
        values = layer.values(trainer.state(f"{layer.name}.codes"))
        theirs = (reference.codes(index) * reference.scales[index]).detach().numpy()
        same += int((np.abs(values - theirs) < 1e-6).sum())
        total += values.size
    assert same >= 0.999 * total
