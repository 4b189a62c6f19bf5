"""What a prompt shows of the objects that users hold: one line, not pages of constants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nybble
from nybble.export import ExportReport

from .conftest import mlp, program_of

FIXTURES = Path(__file__).parents[1] / "fixtures"


def test_a_method_shows_its_types() -> None:
    """Name, inputs, outputs and device; ``print`` gives the program as text."""
    method = program_of(mlp())["forward"]
    assert "<Method forward(input_0: float32[8, 16]) -> output_0: float32[8, 12] on host>" == repr(
        method
    )
    assert str(method).startswith("method forward(")


def test_a_trainer_shows_its_layers_and_steps() -> None:
    """Which layers on which device, and how many steps were applied."""
    trainer = nybble.Trainer(program_of(mlp()))
    assert "<Trainer of forward on host: 2 layers, 0 steps applied>" == repr(trainer)
    assert repr(trainer) == str(trainer)
    float(trainer.step(np.ones((8, 16), np.float32), np.zeros(8, int)))
    assert repr(trainer).endswith(": 2 layers, 1 step applied>")
    trainer.close()
    assert repr(trainer).endswith(": 2 layers, closed>")


def test_layers_show_names_and_features() -> None:
    """``trainer.layers`` at a prompt is a list of names with output and input features."""
    trainer = nybble.Trainer(program_of(mlp()))
    assert "(forward.linear_0 [24, 16], forward.linear_1 [12, 24])" == repr(trainer.layers)


def test_a_verification_shows_its_summary() -> None:
    """Not a row a call: ``print`` gives those."""
    program = program_of(mlp())
    report = program.verify(np.ones((8, 16), np.float32))
    assert f"<VerifyReport: {report.summary}>" == repr(report)


def test_states_show_their_names() -> None:
    """A program without states says so."""
    assert "<ProgramState: none>" == repr(program_of(mlp()).state)
    with nybble.load(FIXTURES / "q4_cached_attention.pte", device="host") as program:
        assert ", ".join(program.state) in repr(program.state)
        assert len(repr(program.state)) < 400


@pytest.mark.parametrize("name", ["x", ("x",)])
def test_names_that_are_not_there_are_not_in(name: Any) -> None:
    """``in`` and ``get`` work as with any mapping; only ``[]`` raises."""
    program = program_of(mlp())
    for mapping in (program, program.state):
        assert name not in mapping
        assert mapping.get(name) is None
        with pytest.raises(nybble.ContractError, match="no "):
            mapping[name]
    assert "forward" in program


def test_an_export_shows_its_summary() -> None:
    """The reference module has pages of its own; they are not shown."""
    report = ExportReport(Path("m.pte"), 5, (), (), (), (), reference=object())
    assert f"<ExportReport {report.summary}>" == repr(report)
