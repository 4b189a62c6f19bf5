"""Trains one 4-bit network with nybble and with plain torch, step by step beside each other.

Run ``python examples/compare_with_torch.py`` (needs nybble[export]). Both keep a float latent
behind every weight, round it to 4-bit codes with frozen scales in the forward pass, pass the
gradient straight through the rounding, and take the same AdamW steps on the same batches: torch
on the CPU, nybble on ``--device``. Printed are the losses, their largest relative difference over
the first 50 steps, and the share of codes that are equal after 50 and after all.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

import nybble
from nybble.export import export

SIZES = (64, 128, 128, 12)
BATCH = 64
GROUP = 32
LR = 1e-3


class StraightThrough:
    """The network in plain torch: latents, rounded weights, AdamW."""

    def __init__(self, trainer: nybble.Trainer) -> None:
        self.layers = trainer.layers
        self.scales = [
            torch.from_numpy(np.repeat(layer.scales.T, GROUP, axis=1)) for layer in self.layers
        ]
        self.latents = [
            torch.from_numpy(layer.values(layer.codes)).requires_grad_() for layer in self.layers
        ]
        self.biases = [
            torch.from_numpy(layer.call.arguments["bias"].constant.copy()) for layer in self.layers
        ]
        self.optimizer = torch.optim.AdamW(self.latents, LR, weight_decay=0.01)

    def weight(self, index: int) -> torch.Tensor:
        """A layer's rounded weight."""
        scale = self.scales[index]
        return torch.round(self.latents[index] / scale).clamp(-8, 7) * scale

    def step(self, x: NDArray[np.float32], labels: NDArray[np.int64]) -> float:
        """One step; the loss before it."""
        value = torch.from_numpy(x)
        for index, (latent, bias) in enumerate(zip(self.latents, self.biases, strict=True)):
            weight = latent + (self.weight(index) - latent).detach()
            value = nn.functional.linear(value, weight, bias)
            if index + 1 < len(self.layers):
                value = torch.relu(value)
        loss = nn.functional.cross_entropy(value, torch.from_numpy(labels))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def equal_codes(self, trainer: nybble.Trainer) -> float:
        """Share of weights that both round to one code."""
        same = total = 0
        for index, layer in enumerate(self.layers):
            ours = layer.values(trainer.state(f"{layer.name}.codes"))
            theirs = self.weight(index).detach().numpy()
            half_a_code = np.repeat(layer.scales.T, GROUP, axis=1) / 2
            same += int((np.abs(ours - theirs) <= half_a_code).sum())
            total += ours.size
        return same / total


def make_program(folder: Path, device: str) -> nybble.Program:
    """A perceptron with random weights, exported with 4-bit layers."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for fan_in, fan_out in pairwise(SIZES):
        layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
    path = folder / "perceptron.pte"
    network = nn.Sequential(*layers[:-1]).eval()
    export(network, torch.zeros(BATCH, SIZES[0]), path, quantize="int4", group_size=GROUP)
    return nybble.load(path, device=device)


def main() -> None:
    """Train both, and print how they compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = make_program(Path(folder), arguments.device)
    trainer = nybble.Trainer(program, optimizer=nybble.AdamW(lr=LR, weight_decay=0.01))
    reference = StraightThrough(trainer)
    rng = np.random.default_rng(0)
    rule = rng.standard_normal((SIZES[0], SIZES[-1])).astype(np.float32)
    worst = 0.0
    print(f"{program.device}\n step    nybble     torch   difference")
    for step in range(1, arguments.steps + 1):
        x = rng.standard_normal((BATCH, SIZES[0])).astype(np.float32)
        labels = (x @ rule).argmax(1)
        ours, theirs = float(trainer.step(x, labels)), reference.step(x, labels)
        difference = abs(ours - theirs) / theirs
        if step <= 50:
            worst = max(worst, difference)
        if step in (1, 10, 50) or step % 50 == 0:
            print(f"{step:5} {ours:9.6f} {theirs:9.6f}   {difference:.1e}")
        if step in (50, arguments.steps):
            print(f"      {reference.equal_codes(trainer):.3%} of the codes are equal")
    print(f"largest difference over the first 50 steps: {worst:.1e}")


if __name__ == "__main__":
    try:
        main()
    except nybble.NybbleError as error:
        sys.exit(f"Error: {error}")
