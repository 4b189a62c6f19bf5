"""Sines and cosines of angles beyond what a float32 can reduce."""

from __future__ import annotations

import numpy as np
import pytest

from nybble.devices import devices, open_device
from nybble.testing import run_call


@pytest.mark.device
@pytest.mark.parametrize("device", [info.name for info in devices() if info.name != "host"])
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_any_finite_angle_gives_a_value_in_range(device: str, name: str) -> None:
    """However large an angle is, the result lies in [-1, 1]; without one, it is NaN."""
    sizes = np.geomspace(1e4, 3.4e38, 500).astype(np.float32)
    angles = np.concatenate([sizes, -sizes, np.array([np.inf, -np.inf, np.nan], np.float32)])

    (result,) = run_call(open_device(device), f"aten.{name}.default", {"x": angles})

    assert np.abs(result[:-3]).max() <= 1
    assert np.isnan(result[-3:]).all()
