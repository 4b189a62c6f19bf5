"""``nybble demo``: real images, honest numbers."""

from __future__ import annotations

import io
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import nybble
from nybble.demo import classify as classification
from nybble.demo import show as display
from nybble.demo.data import PROGRAM, Digits, load_digits
from nybble.errors import NybbleError


@pytest.fixture(scope="module")
def digits() -> Digits:
    """Return the shipped images."""
    return load_digits()


def printed(device: str, *, terminal: bool = False, width: int = 80) -> str:
    """Return what the demo prints on ``device``, in a terminal or a pipe."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    colours: dict[str, Any] = {"force_terminal": True, "color_system": "truecolor"}
    console = Console(file=stream, width=width, highlight=False, **(colours if terminal else {}))
    display.show(console, device)
    stream.seek(0)
    return stream.read()


def row(text: str, name: str) -> str:
    """Return the value that stands beside ``name`` in the demo's numbers."""
    (value,) = re.findall(rf"^{re.escape(name)} {{2,}}(.*?) *$", text, re.MULTILINE)
    return str(value)


def test_the_images_are_the_held_out_digits(digits: Digits) -> None:
    """There are 360 images of 8 x 8 pixels, of all ten digits, none of them empty."""
    assert ((360, 8, 8), (360,)) == (digits.images.shape, digits.labels.shape)
    assert set(range(10)) == set(digits.labels.tolist())
    assert (0, 16) == (digits.images.min(), digits.images.max())
    assert (digits.images.max(axis=(1, 2)) > 0).all()


def test_the_images_are_scikit_learns(digits: Digits) -> None:
    """Each image and its label are in scikit-learn's bundled set."""
    sets = pytest.importorskip("sklearn.datasets")
    bundled = sets.load_digits()
    known = {
        image.tobytes(): label for image, label in zip(bundled.images, bundled.target, strict=True)
    }
    found = [known[image.astype(np.float64).tobytes()] for image in digits.images]
    np.testing.assert_array_equal(digits.labels, found)


def test_the_host_classifies_as_the_quantized_eager_model(digits: Digits) -> None:
    """The reference makes the same prediction as the eager model for every image."""
    result = classification.classify(digits, "host")
    np.testing.assert_array_equal(digits.eager_predictions, result.predictions)
    assert result.identical is None
    assert result.milliseconds > 0


def test_a_pipe_gets_plain_text_of_80_columns() -> None:
    """Nothing is coloured, wrapped or wider than a terminal, and each number is there."""
    text = printed("host")
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert row(text, "accuracy") == row(text, "quantized eager model")
    assert "not compared" == row(text, "codes identical to the reference")
    assert len(re.findall(r"\d -> \d", text)) >= 8
    assert "██" in text


def test_a_terminal_gets_grey_half_blocks_of_80_columns() -> None:
    """In colour the pixels are half blocks, and no line is wider than 80 columns."""
    text = printed("host", terminal=True)
    assert "▀" in text
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).replace("\r", "\n")
    assert max(map(len, plain.splitlines())) <= 80


@pytest.mark.device
@pytest.mark.parametrize("device", ["webgpu", "vulkan"])
def test_an_adapter_gives_identical_codes(device: str, digits: Digits) -> None:
    """Through WebGPU and Vulkan every logit equals the reference's, and the demo says yes."""
    text = printed(device, width=200)
    assert "yes" == row(text, "codes identical to the reference")
    assert row(text, "accuracy") == row(text, "quantized eager model")
    assert f"{device}:" in row(text, "adapter")
    assert max(map(len, text.splitlines())) <= 80
    assert f"of {len(digits.labels)}" in row(text, "accuracy")


def test_a_difference_is_said(digits: Digits) -> None:
    """One logit that differs in its last bit makes the answer no, and is counted."""
    host = nybble.load(PROGRAM, device="host")
    batches = [image.reshape(host["forward"].inputs[0].shape) for image in digits.images[:4]]
    scores = np.concatenate([host(batch) for batch in batches])
    scores[2, 0] = np.nextafter(scores[2, 0], np.float32(np.inf))
    elsewhere = SimpleNamespace(device=SimpleNamespace(name="webgpu:0"))
    identical, comparison = classification._compare(elsewhere, batches, scores)  # type: ignore[arg-type]  # a stand-in
    assert identical is False
    assert "1 images differ, first image 2" in comparison


def test_a_failed_verification_is_said(digits: Digits) -> None:
    """Equal logits are not enough: each call of the first images must be equal too."""
    host = nybble.load(PROGRAM, device="host")
    batch = digits.images[:1].reshape(host["forward"].inputs[0].shape)

    class Differs:
        summary = "1 of 9 calls differ"

        def __bool__(self) -> bool:
            return False

    device = SimpleNamespace(name="webgpu:0")
    elsewhere = SimpleNamespace(device=device, verify=lambda _: Differs())
    outcome = classification._compare(elsewhere, [batch], host(batch))  # type: ignore[arg-type]  # a stand-in
    assert (False, "1 of 9 calls differ") == outcome


def test_misread_images_are_shown(digits: Digits) -> None:
    """Up to two images that the network gets wrong take the last places."""
    predictions = digits.labels.copy()
    predictions[[100, 200, 300]] += 1
    device = nybble.DeviceInfo("webgpu:0", "adapter", "Vulkan", "cpu", "driver")
    result = classification.Result(device, predictions, 1.0, identical=True, comparison="")
    assert [0, 1, 2, 100, 200] == display._choose(digits, result, 5)


def test_missing_data_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package without the demo's files says what to do."""
    from nybble.demo import data

    monkeypatch.setattr(data, "_IMAGES", PROGRAM.with_name("absent.npz"))
    with pytest.raises(NybbleError, match="install nybble again"):
        load_digits()
