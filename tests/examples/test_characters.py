"""The example language model: its characters, its windows of text, and the shipped program."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nybble

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))

import character_transformer  # noqa: E402
import digits_recovery  # noqa: E402
from characters import ALPHABET, decode, encode, windows  # noqa: E402


def test_printable_text_survives() -> None:
    """Every character of the alphabet has its own token, and text comes back from tokens."""
    assert 96 == len(ALPHABET) == len(set(ALPHABET))
    np.testing.assert_array_equal(np.arange(96), encode(ALPHABET))
    assert "Let me not\n~" == decode(encode("Let me not\n~"))


def test_other_characters_become_plain_or_are_left_out() -> None:
    """Typographic quotes and dashes have an ASCII likeness, tabs are spaces; others vanish."""
    assert '"it\'s" -- 4    5' == decode(encode("\u201cit\u2019s\u201d \u2014\u03c0 4\t5\u2603"))


def test_labels_are_the_characters_that_follow() -> None:
    """A window's labels are the text one character further."""
    tokens = np.arange(90, dtype=np.int64)
    inputs, labels = windows(tokens, 5, 64, np.random.default_rng(0))

    assert (5, 64) == inputs.shape == labels.shape
    np.testing.assert_array_equal(inputs + 1, labels)
    assert len({int(row[0]) for row in inputs}) > 1


def test_a_short_text_is_refused() -> None:
    """A text no longer than a window cannot be cut into windows."""
    with pytest.raises(ValueError, match="has 3 known characters; it needs more than 64"):
        windows(encode("abc"), 1, 64, np.random.default_rng(0))


def test_the_shipped_model_is_small_and_reads_the_alphabet() -> None:
    """The program takes [16, 64] tokens, gives logits of all 96, and has 4-bit layers alone."""
    path = EXAMPLES / "character.pte"
    program = nybble.load(path, device="null")
    names = [call.operator.name for call in program["forward"].source.calls]

    assert path.stat().st_size < 1_000_000
    assert (16, 64) == program["forward"].inputs[0].shape
    assert (16, 64, len(ALPHABET)) == program["forward"].outputs[0].shape
    assert 13 == names.count("et_vk.linear_q4gsw.default")
    assert 1 == names.count("et_vk.embedding_q4gsw.default")
    assert "aten.linear.default" not in names


@pytest.mark.device
@pytest.mark.slow
def test_the_model_learns_alike_on_webgpu_and_vulkan() -> None:
    """Three training steps of the transformer give one loss on both, and it falls."""
    tokens = encode((EXAMPLES.parent / "LICENSE").read_text(encoding="utf-8"))
    losses = {}
    for device in ("webgpu", "vulkan"):
        program = nybble.load(EXAMPLES / "character.pte", device=device)
        trainer = nybble.Trainer(program, optimizer=nybble.AdamW(lr=4e-3))
        rows, length = program["forward"].inputs[0].shape
        batch = windows(tokens, rows, length, trainer.rng)
        losses[device] = [float(trainer.step(*batch)) for _ in range(3)]
        trainer.close()
        program.close()

    assert losses["webgpu"][2] < 0.9 * losses["webgpu"][0]
    # A GPU's matrix units make float16's difference; codes that round the other way grow from it.
    np.testing.assert_allclose(losses["vulkan"], losses["webgpu"], rtol=1e-3)


@pytest.mark.device
@pytest.mark.slow
def test_the_transformer_example_takes_a_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One option chooses where it trains; it writes before and after, and the tuned program.

    How far it is stands on standard error, and why a character takes as long as it does.
    """
    out = tmp_path / "tuned.pte"
    text = EXAMPLES.parent / "LICENSE"
    arguments = ["--device", "vulkan", "--steps", "2", "--characters", "2", "--out", out]
    monkeypatch.setattr(sys, "argv", ["character_transformer.py", *map(str, (text, *arguments))])
    character_transformer.main()
    printed, told = capsys.readouterr()

    assert "computes a batch of 16 texts for each character" in told
    assert 2 == told.count("2 of 2 characters")
    assert re.search(r"step 1 of 2: loss \d.*\n.*step 2 of 2: loss \d", told)
    assert printed.index("--- before: loss ") < printed.index("--- after: loss ")
    assert "2 steps in" in printed
    assert "on vulkan:" in printed
    assert (16, 64) == nybble.load(out, device="null")["forward"].inputs[0].shape


@pytest.mark.device
@pytest.mark.parametrize("device", ["webgpu", "vulkan"])
def test_the_digits_example_takes_a_device(
    device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One option chooses where it trains; what the turn cost comes back."""
    out = tmp_path / "tuned.pte"
    arguments = ["digits_recovery.py", "--device", device, "--out", str(out)]
    monkeypatch.setattr(sys, "argv", arguments)
    digits_recovery.main()
    printed = capsys.readouterr().out
    _, _, turned, tuned = map(float, re.findall(r"([0-9.]+)%", printed))

    assert turned < 70
    assert tuned > 90
    assert f"on {device}:" in printed
    assert out.is_file()


@pytest.mark.parametrize(
    ("example", "arguments", "sentence"),
    [
        ("digits_recovery", ["--device", "cuda"], "cuda"),
        ("character_transformer", ["nowhere.txt"], "nowhere.txt"),
        ("character_transformer", ["characters.pte", "--device", "host"], "can't decode byte"),
    ],
)
def test_mistakes_end_in_a_sentence(
    tmp_path: Path, example: str, arguments: list[str], sentence: str
) -> None:
    """What went wrong, without the places in the code where it did."""
    (tmp_path / "characters.pte").write_bytes(b"\xff")
    command = [sys.executable, str(EXAMPLES / f"{example}.py"), *arguments]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert 1 == ended.returncode
    assert "Traceback" not in ended.stderr
    # Dawn tells its own limits before it.
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("Error: ")
    assert sentence in last
