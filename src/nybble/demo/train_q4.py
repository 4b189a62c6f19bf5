"""Trains a perceptron on upright digits, exports it with 4-bit weights, and turns the digits.

Run ``python -m nybble.demo.train_q4`` (needs nybble[export]); it writes ``digits_q4.pte`` and
``digits_rotated.npz`` beside this file: what the recovery demo starts from.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from rich.progress import track
from scipy.ndimage import rotate
from torch import nn

from nybble.demo.rotated import DEGREES
from nybble.demo.train import SEED, split_digits
from nybble.export import export

__all__ = ["DigitPerceptron", "main"]

BATCH = 60  # divides the 360 held-out images; the program's batch is fixed
EPOCHS = 60
LEARNING_RATE = 3e-3
GROUP_SIZE = 32


class DigitPerceptron(nn.Module):
    """Ten logits [n, 10] from grey images [n, 8, 8] with values 0 to 16."""

    def __init__(self) -> None:
        super().__init__()
        # The exporter's 4-bit linear has outputs in multiples of 4; the last two are cut off.
        self.layers = nn.Sequential(
            nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 12)
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits of ``images``."""
        return self.layers(images.flatten(1) * (1 / 16))[:, :10]


def train(images: torch.Tensor, labels: torch.Tensor, epochs: int) -> DigitPerceptron:
    """A trained network, in evaluation mode; the same one for the same torch on one thread."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    network = DigitPerceptron()
    optimizer = torch.optim.AdamW(network.parameters(), LEARNING_RATE, weight_decay=0.05)
    for _ in track(range(epochs), "training"):
        for chosen in torch.randperm(len(images)).split(BATCH):
            loss = nn.functional.cross_entropy(network(images[chosen]), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return network.eval()


def rotated(images: torch.Tensor) -> NDArray[np.uint8]:
    """``images`` [n, 8, 8] turned by DEGREES about their centres, in whole steps from 0 to 16."""
    turned = rotate(images.numpy(), DEGREES, axes=(1, 2), reshape=False, order=1)
    return np.clip(np.rint(turned), 0, 16).astype(np.uint8)


def accuracy(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    """The part of ``images`` that ``model`` reads right, in batches of BATCH."""
    with torch.no_grad():
        predictions = torch.cat([model(batch).argmax(1) for batch in images.split(BATCH)])
    return float((predictions == labels).float().mean())


def main() -> None:
    """Train, export, turn the images, and write the two files of the recovery demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, default=Path(__file__).parent)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    arguments = parser.parse_args()
    images, held_out, labels, held_out_labels = split_digits()
    images, held_out = images.squeeze(1), held_out.squeeze(1)
    network = train(images, labels, arguments.epochs)
    path = arguments.directory / "digits_q4.pte"
    report = export(network, images[:BATCH], path, quantize="int4", group_size=GROUP_SIZE)
    turned = rotated(held_out)
    sets = (held_out, torch.as_tensor(turned, dtype=torch.float32))
    accuracies = [accuracy(network, part, held_out_labels) for part in sets]
    quantized = [accuracy(report.reference, part, held_out_labels) for part in sets]
    np.savez_compressed(
        arguments.directory / "digits_rotated.npz",
        train_images=rotated(images),
        train_labels=labels.numpy().astype(np.uint8),
        test_images=turned,
        upright_images=held_out.numpy().astype(np.uint8),
        test_labels=held_out_labels.numpy().astype(np.uint8),
        float_accuracies=np.array(accuracies),
    )
    print(report)
    for name, values in (("float32", accuracies), ("4-bit weights", quantized)):
        print(f"{name}: {values[0]:.2%} upright, {values[1]:.2%} turned by {DEGREES} degrees")


if __name__ == "__main__":
    main()
