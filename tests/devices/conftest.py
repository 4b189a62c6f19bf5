"""WebGPU adapters of this machine, each in turn."""

from __future__ import annotations

import pytest

from nybble.devices import Device, devices, open_device

ADAPTERS = [info.name for info in devices() if info.name != "host"]


@pytest.fixture(params=ADAPTERS or ["none"])
def adapter(request: pytest.FixtureRequest) -> str:
    """The name of each adapter in turn."""
    if request.param == "none":
        pytest.fail("no WebGPU adapter: run `make test`, which installs a software one")
    return str(request.param)


@pytest.fixture
def device(adapter: str) -> Device:
    """Each adapter, opened; the device may be lost afterwards."""
    return open_device(adapter)
