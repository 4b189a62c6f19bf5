"""Finds WebGPU adapters through wgpu-py, and through Dawn where ``wgpudawn`` is installed."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from nybble.devices.base import DeviceInfo
from nybble.errors import DeviceError

__all__ = ["PROVIDERS", "Adapter", "adapters", "find_adapter"]

PROVIDERS = {"webgpu": "wgpu", "dawn": "wgpudawn"}
"""Device name to the module that offers it."""
_TITLES = {"webgpu": "WebGPU", "dawn": "Dawn"}
_BACKENDS = ("Vulkan", "Metal", "D3D12")
_KINDS = {
    "DiscreteGPU": "discrete gpu",
    "IntegratedGPU": "integrated gpu",
    "VirtualGPU": "virtual gpu",
    "CPU": "cpu",
}
_PREFERENCE = ("discrete gpu", "integrated gpu", "virtual gpu", "unknown", "cpu")


@dataclass(frozen=True)
class Adapter:
    """An adapter: what it is, the module that found it, and its handle there."""

    info: DeviceInfo
    module: Any
    handle: Any

    @property
    def software(self) -> bool:
        """Whether the adapter is a CPU."""
        return self.info.kind == "cpu"


@cache
def adapters(provider: str) -> tuple[Adapter, ...]:
    """The usable adapters of one of :data:`PROVIDERS`, in the drivers' order; maybe none."""
    if sys.platform.startswith("linux"):
        # wgpu-native prints an error for each adapter look-up where this is unset.
        os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    return tuple(_provided(provider, PROVIDERS[provider]))


def _provided(name: str, module_name: str) -> Iterator[Adapter]:
    try:
        module = importlib.import_module(module_name)
        handles = module.gpu.enumerate_adapters_sync()
    except Exception:  # noqa: BLE001 (a missing package, loader or driver means no adapter)
        return
    usable = [h for h in handles if h.info.get("backend_type") in _BACKENDS]
    for number, handle in enumerate(usable):
        yield Adapter(_describe(f"{name}:{number}", handle), module, handle)


def _describe(name: str, handle: Any) -> DeviceInfo:
    info = handle.info
    driver = str(info.get("description") or info.get("architecture") or "")
    return DeviceInfo(
        name=name,
        adapter=str(info.get("device") or info.get("vendor") or "unknown"),
        backend=str(info.get("backend_type")),
        kind=_KINDS.get(str(info.get("adapter_type")), "unknown"),
        driver=driver,
        limits={key: int(value) for key, value in dict(handle.limits).items()},
        features=tuple(sorted(map(str, handle.features))),
    )


def find_adapter(name: str) -> Adapter:
    """The adapter called ``webgpu`` (the best), ``webgpu:N``, ``dawn`` or ``dawn:N``.

    Raises:
        DeviceError: there is none; the message lists those that exist.
    """
    provider = name.split(":", maxsplit=1)[0]
    ours = adapters(provider)
    if ":" not in name and ours:
        return min(ours, key=lambda a: _PREFERENCE.index(a.info.kind))
    for adapter in ours:
        if adapter.info.name == name:
            return adapter
    if importlib.util.find_spec(PROVIDERS[provider]) is None:
        package = PROVIDERS[provider]
        raise DeviceError(f"device {name!r} needs the package {package}: pip install {package}")
    listed = "; ".join(str(a.info) for a in ours) or "none"
    raise DeviceError(
        f"device {name!r} was not found; {_TITLES[provider]} adapters here: {listed}. "
        "Run `nybble doctor` to see what is missing and how to get it, or use device='host'"
    )
