"""The adapters of this machine, each in turn: WebGPU's by name, every one as an opened device."""

from __future__ import annotations

import pytest

from nybble.devices import Device, devices, open_device

ADAPTERS = [info.name for info in devices() if info.name != "host"]
WEBGPU = [name for name in ADAPTERS if name.startswith(("webgpu", "dawn"))]


@pytest.fixture(params=WEBGPU or ["none"])
def adapter(request: pytest.FixtureRequest) -> str:
    """The name of each WebGPU adapter in turn."""
    return _present(request)


@pytest.fixture(params=ADAPTERS or ["none"])
def device(request: pytest.FixtureRequest) -> Device:
    """Each adapter, opened."""
    return open_device(_present(request))


def _present(request: pytest.FixtureRequest) -> str:
    if request.param == "none":
        pytest.fail("no adapter: run `make test`, which installs a software one")
    return str(request.param)
