"""The recovery demo's network and data: whole, and worth recovering from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nybble
from nybble.demo import rotated
from nybble.demo.data import load_digits
from nybble.demo.rotated import DEGREES, Q4_PROGRAM, load_rotated_digits


def accuracy(program: nybble.Program, images: np.ndarray, labels: np.ndarray) -> float:
    """The part of ``images`` that the program reads right, in batches of its fixed size."""
    size = program["forward"].inputs[0].shape[0]
    predictions = [
        np.asarray(program(images[start : start + size])).argmax(axis=1)
        for start in range(0, len(images), size)
    ]
    return float((np.concatenate(predictions) == labels).mean())


def test_the_turn_costs_the_4_bit_network_accuracy() -> None:
    """4 bits cost little on upright digits; turned by 20 degrees, a third of them is misread."""
    digits = load_rotated_digits()
    program = nybble.load(Q4_PROGRAM, device="host")
    upright = accuracy(program, digits.upright_images, digits.test_labels)
    turned = accuracy(program, digits.test_images, digits.test_labels)

    assert 0.95 < upright <= digits.float_accuracies[0]
    assert turned < 0.7
    assert digits.float_accuracies[1] < 0.7


def test_all_three_layers_are_4_bit() -> None:
    """The network has no linear layer outside the 4-bit operator."""
    program = nybble.load(Q4_PROGRAM, device="host")
    names = [call.operator.name for call in program["forward"].source.calls]

    assert 3 == names.count("et_vk.linear_q4gsw.default")
    assert not [name for name in names if name in {"aten.linear.default", "aten.addmm.default"}]


def test_the_images_are_those_held_out_and_in_range() -> None:
    """Upright test images are the first demo's; turned ones have the same size and range."""
    digits = load_rotated_digits()

    np.testing.assert_array_equal(load_digits().images, digits.upright_images)
    np.testing.assert_array_equal(load_digits().labels, digits.test_labels)
    assert (1437, 8, 8) == digits.train_images.shape
    assert (1437,) == digits.train_labels.shape
    for images in (digits.train_images, digits.test_images):
        assert images.min() >= 0
        assert 16 == images.max()


def turned(image: np.ndarray, degrees: float) -> np.ndarray:
    """``image`` [8, 8] turned about its centre, one pixel at a time; dark outside."""
    cosine, sine = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    padded = np.pad(image.astype(np.float64), ((0, 1), (0, 1)))
    result = np.zeros((8, 8))
    for row, column in np.ndindex(8, 8):
        down = 3.5 + cosine * (row - 3.5) + sine * (column - 3.5)
        right = 3.5 - sine * (row - 3.5) + cosine * (column - 3.5)
        if 0 <= down <= 7 and 0 <= right <= 7:
            top, left = int(down), int(right)
            a, b = down - top, right - left
            upper = (1 - b) * padded[top, left] + b * padded[top, left + 1]
            lower = (1 - b) * padded[top + 1, left] + b * padded[top + 1, left + 1]
            result[row, column] = (1 - a) * upper + a * lower
    return result


def test_turned_images_are_the_upright_ones_turned_by_20_degrees() -> None:
    """Every turned test image is its upright one, interpolated, rounded to whole steps."""
    digits = load_rotated_digits()
    expected = np.stack([turned(image, DEGREES) for image in digits.upright_images])

    assert 20 == DEGREES
    assert np.abs(expected - digits.test_images).max() <= 0.5 + 1e-4


def test_missing_images_are_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the data file the error says which file it is and how to get it."""
    monkeypatch.setattr(rotated, "_IMAGES", tmp_path / "digits_rotated.npz")
    with pytest.raises(nybble.NybbleError, match="digits_rotated.npz.*nybble.demo.train_q4"):
        load_rotated_digits()
