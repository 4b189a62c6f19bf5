"""The data of the recovery demo: a 4-bit network, and the digits it has to learn again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nybble.errors import NybbleError

__all__ = ["DEGREES", "Q4_PROGRAM", "RotatedDigits", "load_rotated_digits"]

DEGREES = 20
Q4_PROGRAM = Path(__file__).with_name("digits_q4.pte")
"""Takes images [60, 8, 8] with values 0 to 16, gives logits [60, 10]."""
_IMAGES = Path(__file__).with_name("digits_rotated.npz")


@dataclass(frozen=True)
class RotatedDigits:
    """Digits turned by DEGREES, which the shipped network has only seen upright.

    ``train_images`` [1437, 8, 8] and ``test_images`` [360, 8, 8] have values 0 to 16;
    ``upright_images`` are the test images before the turn, and the labels are those of each.
    ``float_accuracies`` are the network's before quantization, of upright and turned test images.
    """

    train_images: NDArray[np.float32]
    train_labels: NDArray[np.int32]
    test_images: NDArray[np.float32]
    upright_images: NDArray[np.float32]
    test_labels: NDArray[np.int32]
    float_accuracies: tuple[float, float]


def load_rotated_digits() -> RotatedDigits:
    """Read the images. Raises NybbleError when the package's data files are missing."""
    try:
        with np.load(_IMAGES, allow_pickle=False) as archive:
            upright, rotated = (float(value) for value in archive["float_accuracies"])
            return RotatedDigits(
                train_images=archive["train_images"].astype(np.float32),
                train_labels=archive["train_labels"].astype(np.int32),
                test_images=archive["test_images"].astype(np.float32),
                upright_images=archive["upright_images"].astype(np.float32),
                test_labels=archive["test_labels"].astype(np.int32),
                float_accuracies=(upright, rotated),
            )
    except FileNotFoundError:
        raise NybbleError(
            f"The demo's images ({_IMAGES.name}) are not in the installed package: install nybble "
            "again, or make them with python -m nybble.demo.train_q4."
        ) from None
