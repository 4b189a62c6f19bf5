"""Trains the demo's network on scikit-learn's digits and exports it in int8.

Run ``python -m nybble.demo.train`` (needs nybble[export]); it writes ``digits.pte`` and
``digits.npz`` beside this file: the 360 images held out from training, raw, with their labels and
the quantized eager model's logits.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from rich.progress import track
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from nybble.demo.network import DigitNetwork
from nybble.export import export

__all__ = ["main", "train"]

HELD_OUT = 360
EPOCHS = 40
BATCH = 64
LEARNING_RATE = 1e-2
SEED = 0


def split_digits() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Training images and held-out images [n, 1, 8, 8], values 0 to 16, then their labels [n]."""
    digits = load_digits()
    images = digits.images.astype(np.float32)[:, np.newaxis]
    parts = train_test_split(
        images, digits.target, test_size=HELD_OUT, random_state=SEED, stratify=digits.target
    )
    return tuple(torch.as_tensor(part) for part in parts)


def _shifted(images: torch.Tensor) -> torch.Tensor:
    """The images moved by at most one pixel; what enters at the border is zero."""
    down, right = torch.randint(0, 3, (2,)).tolist()
    padded = nn.functional.pad(images, (1, 1, 1, 1))
    return padded[:, :, down : down + 8, right : right + 8]


def train(images: torch.Tensor, labels: torch.Tensor, epochs: int) -> DigitNetwork:
    """A trained network, in evaluation mode; the same one for the same torch on one thread."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    network = DigitNetwork()
    optimizer = torch.optim.AdamW(network.parameters(), LEARNING_RATE)
    steps = -(-len(images) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, LEARNING_RATE, epochs=epochs, steps_per_epoch=steps
    )
    network.train()
    for _ in track(range(epochs), "training"):
        for chosen in torch.randperm(len(images)).split(BATCH):
            logits = network(_shifted(images[chosen]))
            loss = nn.functional.cross_entropy(logits, labels[chosen], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return network.eval()


def _logits(model: nn.Module, images: torch.Tensor) -> NDArray[np.float32]:
    """Logits [n, 10], one image at a time as the program takes them."""
    with torch.no_grad():
        logits: NDArray[np.float32] = torch.cat([model(image) for image in images.split(1)]).numpy()
    return logits


def main() -> None:
    """Train, export, and write the two files of the demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, default=Path(__file__).parent)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    arguments = parser.parse_args()
    images, held_out, labels, held_out_labels = split_digits()
    network = train(images, labels, arguments.epochs)
    report = export(
        network,
        images[:1],
        arguments.directory / "digits.pte",
        quantize="int8",
        calibration=images[:256].split(1),
    )
    logits = _logits(report.reference, held_out)
    predictions = logits.argmax(axis=1)
    np.savez_compressed(
        arguments.directory / "digits.npz",
        images=held_out.squeeze(1).numpy().astype(np.uint8),
        labels=held_out_labels.numpy(),
        eager_predictions=predictions,
        eager_logits=logits,
    )
    exact = held_out_labels.numpy()
    before = (_logits(network, held_out).argmax(axis=1) == exact).mean()
    print(f"held-out accuracy: float {before:.2%}, int8 {(predictions == exact).mean():.2%}")
    print(report)


if __name__ == "__main__":
    main()
