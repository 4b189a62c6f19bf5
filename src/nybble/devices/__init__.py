"""Devices replay plans: WebGPU and Vulkan adapters, the host, and one that computes nothing."""

from __future__ import annotations

import contextlib
import warnings
from typing import TYPE_CHECKING

from nybble.errors import DeviceError, OutOfDeviceMemoryError

from .base import Device, DeviceInfo, Executable, States, Timing, run_reference
from .host import HostDevice
from .null import NullDevice

if TYPE_CHECKING:
    from .vulkan import VulkanDevice
    from .webgpu import WebGpuDevice

__all__ = [
    "Device", "DeviceInfo", "Executable", "HostDevice", "NullDevice", "States", "Timing",
    "devices",
    "open_device", "run_reference", "second_choice",
]  # fmt: skip


def devices() -> tuple[DeviceInfo, ...]:
    """Every device that :func:`nybble.load` accepts here, the host last."""
    from . import vulkan
    from .webgpu import PROVIDERS, adapters

    found = [adapter.info for provider in PROVIDERS for adapter in adapters(provider)]
    return (*found, *(adapter.info for adapter in vulkan.adapters()), HostDevice().info)


def open_device(name: str = "auto") -> Device:
    """The device called ``name``.

    ``auto`` is the best GPU that has a Vulkan driver of its own, else the best WebGPU adapter,
    else the host (said in a warning); ``webgpu`` the best adapter, ``webgpu:1`` the second,
    ``dawn`` the same through Dawn, ``vulkan`` and ``vulkan:1`` the same through Vulkan itself,
    ``host`` the numpy references, ``null`` a device that computes nothing.

    Raises:
        DeviceError: there is no such device; the message lists those that exist.
    """
    if name == "host":
        return HostDevice()
    if name == "null":
        return NullDevice()
    if name == "auto":
        return _automatic()
    kind = name.split(":", maxsplit=1)[0] if isinstance(name, str) else None
    if kind in ("webgpu", "dawn"):
        from .webgpu import find_adapter

        return _open_adapter(find_adapter(name).info.name)
    if kind == "vulkan":
        from . import vulkan

        return _open_vulkan(vulkan.find_adapter(name).info.name)
    listed = ", ".join(info.name for info in devices())
    raise DeviceError(f"unknown device {name!r}; devices here: {listed}, or 'auto'")


def _automatic() -> Device:
    from . import vulkan

    # A software adapter gains nothing: the host's time a dispatch is small beside the kernel's.
    if any(adapter.preferred for adapter in vulkan.adapters()):
        with contextlib.suppress(DeviceError):
            return open_device("vulkan")
    try:
        return open_device("webgpu")
    except DeviceError as error:
        warnings.warn(
            f"running on the host's numpy references, which are slow: {error}",
            stacklevel=4,
        )
        return HostDevice()


def second_choice(name: str, refused: Device, error: DeviceError) -> Device | None:
    """What ``auto`` takes where its first choice refused a program: WebGPU in Vulkan's place.

    None where another device was asked for, there is no other, or memory ran out, of which both
    have the same.
    """
    ours = refused.info.name.startswith("vulkan")
    if name != "auto" or not ours or isinstance(error, OutOfDeviceMemoryError):
        return None
    with contextlib.suppress(DeviceError):
        return open_device("webgpu")
    return None


_OPENED: dict[str, WebGpuDevice] = {}
_OPENED_VULKAN: dict[str, VulkanDevice] = {}
"""One device an adapter: pipelines compiled for one program serve the next."""


def _open_adapter(name: str) -> Device:
    from .webgpu import WebGpuDevice, adapters, find_adapter

    opened = _OPENED.get(name)
    if opened is not None and not opened.answers():
        # A lost device stays lost, and Dawn gives each adapter one device only: look anew.
        adapters.cache_clear()
        opened = None
    if opened is None:
        opened = _OPENED[name] = WebGpuDevice(find_adapter(name))
    return opened


def _open_vulkan(name: str) -> Device:
    from . import vulkan

    opened = _OPENED_VULKAN.get(name)
    if opened is None or not opened.answers():
        opened = vulkan.VulkanDevice(vulkan.find_adapter(name))
        _OPENED_VULKAN[name] = opened
    return opened
