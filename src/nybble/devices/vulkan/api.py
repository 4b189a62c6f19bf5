"""Vulkan's C functions through the ``vulkan`` package: looked up once, structs built by name.

The package's own wrappers convert every argument at each call; ours hold what a replay needs ready.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from types import ModuleType
from typing import Any

from nybble.errors import DeviceError, DeviceLostError, OutOfDeviceMemoryError

__all__ = ["Functions", "array_of", "bindings", "check", "enumerated", "struct", "text"]

_OUT_OF_MEMORY = (-1, -2, -1000069000)
_DEVICE_LOST = -4
_RESULTS = {
    -3: "initialization failed",
    -5: "memory could not be mapped",
    -6: "a layer is not present",
    -7: "an extension is not present",
    -8: "a feature is not present",
    -9: "no driver is compatible",
    -10: "too many objects",
    -12: "a pool is fragmented",
    -13: "the driver gives no reason",
}
_KEPT: weakref.WeakKeyDictionary[Any, tuple[Any, ...]] = weakref.WeakKeyDictionary()
"""What a struct points to, which C does not keep alive."""


@lru_cache(maxsize=1)
def bindings() -> ModuleType:
    """The ``vulkan`` package, which opens the loader.

    Raises:
        DeviceError: the package or the loader is not installed.
    """
    try:
        import vulkan
    except ImportError:
        raise DeviceError(
            "the Python package 'vulkan' is not installed: pip install vulkan"
        ) from None
    except OSError:
        raise DeviceError(
            "the Vulkan loader was not found; install it (Debian, Ubuntu: apt-get install "
            "libvulkan1; Windows: it comes with the GPU's driver; macOS: the Vulkan SDK)"
        ) from None
    module: ModuleType = vulkan
    return module


class Functions:
    """Functions of an instance or a device, each looked up at first use."""

    def __init__(self, lookup: Callable[[Any], Any]) -> None:
        self._lookup = lookup

    def __getattr__(self, name: str) -> Any:
        ffi = bindings().ffi
        pointer = self._lookup(ffi.new("char[]", name.encode()))
        if pointer == ffi.NULL:
            raise DeviceError(f"the Vulkan driver has no function {name}; update the driver")
        function = ffi.cast(f"PFN_{name}", pointer)
        setattr(self, name, function)
        return function


def check(result: int, what: str) -> None:
    """Raise what a function's result says.

    Raises:
        OutOfDeviceMemoryError: memory ran out.
        DeviceLostError: the device went away.
        DeviceError: anything else that is no success.
    """
    if result >= 0:
        return
    if result in _OUT_OF_MEMORY:
        raise OutOfDeviceMemoryError(
            f"{what}: out of {'host' if result == -1 else 'device'} memory. Use a smaller batch, "
            "close other programs, or use device='host'"
        )
    if result == _DEVICE_LOST:
        raise DeviceLostError(f"{what}: the device was lost. Load the program again to go on")
    reason = _RESULTS.get(result, "an error that Vulkan's specification of this call names")
    raise DeviceError(f"{what}: {reason} (VkResult {result})")


def struct(name: str, **fields: Any) -> Any:
    """A pointer to a new struct, its ``sType`` filled in; it keeps alive what it points to."""
    vk = bindings()
    kind = _structure_type(name)
    if kind is not None:
        fields["sType"] = kind
    pointer = vk.ffi.new(f"{name}*", fields)
    _KEPT[pointer] = tuple(fields.values())
    return pointer


def array_of(name: str, items: Sequence[Any]) -> Any:
    """A C array of handles, or of the structs that ``items`` point to."""
    ffi = bindings().ffi
    by_value = [i[0] if ffi.typeof(i).kind == "pointer" and _is_struct(name) else i for i in items]
    result = ffi.new(f"{name}[]", by_value)
    _KEPT[result] = tuple(items)
    return result


def enumerated(function: Callable[..., Any], name: str, what: str, *head: Any) -> Any:
    """What a function with a count and an array gives, asked twice as Vulkan wants it."""
    ffi = bindings().ffi
    count = ffi.new("uint32_t*")
    check(_result(function(*head, count, ffi.NULL)), what)
    kind = _structure_type(name)
    # An extensible struct tells its type even where the driver fills it.
    blank = [{"sType": kind}] * count[0] if kind is not None else count[0]
    items = ffi.new(f"{name}[]", blank)
    check(_result(function(*head, count, items)), what)
    return [items[i] for i in range(count[0])]


def text(characters: Any) -> str:
    """A Python string of a C one."""
    return str(bindings().ffi.string(characters).decode(errors="replace"))


def _result(value: int | None) -> int:
    return 0 if value is None else value


@cache
def _is_struct(name: str) -> bool:
    return bool(bindings().ffi.typeof(name).kind == "struct")


@cache
def _structure_type(name: str) -> int | None:
    if not _is_struct(name) or "sType" not in dict(bindings().ffi.typeof(name).fields):
        return None
    words = re.sub(r"Vulkan1(\d)", r"Vulkan_1_\1", name.removeprefix("Vk"))
    words = re.sub(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[0-9])(?=[A-Z])", "_", words)
    value: int = getattr(bindings(), f"VK_STRUCTURE_TYPE_{words.upper()}")
    return value
