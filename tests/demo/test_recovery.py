"""The demo's fine-tuning: what is lost to the turn comes back."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from nybble.demo.recovery import recover, show_recovery


@pytest.mark.parametrize(
    "device", ["host", *(pytest.param(n, marks=pytest.mark.device) for n in ("webgpu", "vulkan"))]
)
def test_fine_tuning_wins_back_what_the_turn_cost(device: str) -> None:
    """Turned digits cost a third of the accuracy, and most of it comes back, on each device."""
    result = recover(device)
    assert result.device.startswith(device)
    assert result.float_upright > 0.95
    assert result.upright > 0.95
    assert result.turned < 0.7
    assert result.tuned > 0.9


def test_the_four_accuracies_are_printed() -> None:
    """In a pipe: one line each, without colour."""
    text = io.StringIO()
    result = show_recovery(Console(file=text, width=80), "host")
    lines = text.getvalue().splitlines()
    for value in (result.float_upright, result.upright, result.turned, result.tuned):
        assert any(f"{value:.2%}" in line for line in lines)
    assert "\x1b" not in text.getvalue()
