"""The devices of the conformance suite: a device joins with one line."""

from __future__ import annotations

import pytest

from nybble.devices import Device, devices, open_device

DEVICES = [info.name for info in devices() if info.name != "host"]


@pytest.fixture(scope="session", params=DEVICES or ["none"])
def device(request: pytest.FixtureRequest) -> Device:
    """Every adapter of this machine in turn; ``host`` is what they are compared with."""
    if request.param == "none":
        pytest.fail("no WebGPU adapter: run `make test`, which installs a software one")
    return open_device(request.param)
