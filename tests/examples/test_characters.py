"""The example language model: its characters, its windows of text, and the shipped program."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import nybble

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))

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
