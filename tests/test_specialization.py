"""Programs whose integers a call tells: positions in a cache, and sizes of dynamic axes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nybble
from nybble.devices import devices
from nybble.testing import compare

FIXTURE = Path(__file__).parent / "fixtures" / "q4_cached_attention"
DEVICES = [
    pytest.param(info.name, marks=() if info.name == "host" else pytest.mark.device)
    for info in devices()
]


@pytest.mark.parametrize("device", DEVICES)
def test_position_comes_with_the_call(device: str) -> None:
    """Two calls at consecutive positions give the eager model's rows, the cache kept between."""
    data = dict(np.load(FIXTURE.with_suffix(".npz")))
    with nybble.load(FIXTURE.with_suffix(".pte"), device=device) as program:
        first = program(data["input_0"], data["input_1"])
        following = program(data["next_input_0"], data["next_input_1"])

    assert None is compare(first, data["output_0"], exact=False)
    assert None is compare(following, data["next_output_0"], exact=False)


@pytest.mark.parametrize("device", DEVICES)
def test_positions_in_any_order_equal_the_host(device: str) -> None:
    """Rows written at positions that jump about give what the host gives, state included."""
    rng = np.random.default_rng(0)
    calls = [(rng.standard_normal((1, 2, 32)).astype(np.float32), p) for p in (6, 0, 14, 2, 2)]
    path = FIXTURE.with_suffix(".pte")
    with nybble.load(path, device=device) as program, nybble.load(path, device="host") as host:
        for x, position in calls:
            start = np.array([position])
            assert None is compare(host(x, start), program(x, start), exact=False)
        for name in host.state:
            assert None is compare(host.state[name], program.state[name], exact=False)


def test_position_beyond_the_cache_is_refused() -> None:
    """A position that leaves the cache is an error that names the rule; the program lives on."""
    with nybble.load(FIXTURE.with_suffix(".pte"), device="host") as program:
        x = np.zeros((1, 2, 32), np.float32)
        with pytest.raises(nybble.ContractError, match="must lie within the cache"):
            program(x, np.array([15]))
        program(x, np.array([14]))


@pytest.mark.parametrize("device", DEVICES)
def test_a_plan_that_does_not_fit_leaves_the_program_usable(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a call whose plan finds no memory, smaller calls run, also the one planned before."""
    data = dict(np.load(FIXTURE.with_suffix(".npz")))
    with nybble.load(FIXTURE.with_suffix(".pte"), device=device) as program:
        program(data["input_0"], data["input_1"])
        method = program.method()

        def full(*_: Any) -> None:
            raise nybble.OutOfDeviceMemoryError("full")

        monkeypatch.setattr(type(method.executable), "adopt", lambda *_: False)
        monkeypatch.setattr(type(method.device), "prepare", full)
        for _ in range(2):
            with pytest.raises(nybble.OutOfDeviceMemoryError, match="full"):
                program(data["next_input_0"], data["next_input_1"])
        monkeypatch.undo()
        first = program(data["input_0"], data["input_1"])
        following = program(data["next_input_0"], data["next_input_1"])

    assert None is compare(first, data["output_0"], exact=False)
    assert None is compare(following, data["next_output_0"], exact=False)
    with pytest.raises(nybble.NybbleError, match="is closed; load the program again"):
        program(data["input_0"], data["input_1"])


@pytest.mark.parametrize("device", DEVICES)
def test_verify_covers_state(device: str) -> None:
    """A program with state verifies, and its own state is left alone."""
    with nybble.load(FIXTURE.with_suffix(".pte"), device=device) as program:
        x = np.random.default_rng(1).standard_normal((1, 2, 32)).astype(np.float32)
        program(x, np.array([0]))
        before = {name: program.state[name] for name in program.state}
        report = program.verify(x, np.array([2]))

        assert report, report.summary
        for name, content in before.items():
            np.testing.assert_array_equal(content, program.state[name])


@pytest.mark.parametrize("device", DEVICES)
def test_profile_leaves_state_alone(device: str) -> None:
    """Timing a program runs it many times, and its state is as before afterwards."""
    with nybble.load(FIXTURE.with_suffix(".pte"), device=device) as program:
        x = np.random.default_rng(1).standard_normal((1, 2, 32)).astype(np.float32)
        program(x, np.array([0]))
        before = {name: program.state[name] for name in program.state}
        program.profile(x, np.array([4]), repeats=1)

        assert before
        for name, content in before.items():
            np.testing.assert_array_equal(content, program.state[name])
