"""The demo's files, shipped with the package: the program and the images held out from training."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nybble.errors import NybbleError

__all__ = ["PROGRAM", "Digits", "load_digits"]

PROGRAM = Path(__file__).with_name("digits.pte")
_IMAGES = Path(__file__).with_name("digits.npz")


@dataclass(frozen=True)
class Digits:
    """The held-out images, what they show, and what the quantized eager model made of them.

    ``images`` [n, 8, 8] with values 0 to 16; ``labels`` and ``eager_predictions`` [n].
    """

    images: NDArray[np.float32]
    labels: NDArray[np.int64]
    eager_predictions: NDArray[np.int64]


def load_digits() -> Digits:
    """Read the images. Raises NybbleError when the package's data files are missing."""
    try:
        with np.load(_IMAGES, allow_pickle=False) as archive:
            return Digits(
                images=archive["images"].astype(np.float32),
                labels=archive["labels"].astype(np.int64),
                eager_predictions=archive["eager_predictions"].astype(np.int64),
            )
    except FileNotFoundError:
        raise NybbleError(
            f"The demo's images ({_IMAGES.name}) are not in the installed package: install nybble "
            "again, or make them with python -m nybble.demo.train."
        ) from None
