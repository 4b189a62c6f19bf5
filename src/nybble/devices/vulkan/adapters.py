"""Finds the GPUs that Vulkan shows, and says of each that cannot be used what it lacks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from nybble.devices.base import DeviceInfo
from nybble.errors import DeviceError, NybbleError, OutOfDeviceMemoryError

from .api import Functions, bindings, check, enumerated, struct, text
from .features import Features, find_features
from .subgroups import MATRIX_SUBGROUP, Subgroups, find_subgroups

__all__ = ["Adapter", "MatrixShape", "adapters", "find_adapter", "instance", "why_unusable"]

_LOWEST = (1, 2)
"""Vulkan 1.2 brings timeline semaphores and SPIR-V 1.3's memory rules."""
_NEWEST = (1, 3)
_KINDS = {1: "integrated gpu", 2: "discrete gpu", 3: "virtual gpu", 4: "cpu"}
_PREFERENCE = ("discrete gpu", "integrated gpu", "virtual gpu", "unknown", "cpu")
_COMPONENTS = {
    0: "f16", 1: "f32", 2: "f64", 3: "i8", 4: "i16", 5: "i32", 6: "i64",
    7: "u8", 8: "u16", 9: "u32", 10: "u64", 1000141000: "bf16",
}  # fmt: skip
_SUBGROUP_SCOPE = 3
_DRIVERS_NAMED = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
"""Variables that name the files of the drivers to use, instead of those installed."""
_LIMITS = (
    "maxStorageBufferRange", "maxUniformBufferRange", "maxPerStageDescriptorStorageBuffers",
    "maxDescriptorSetStorageBuffers", "maxComputeSharedMemorySize",
    "maxComputeWorkGroupInvocations", "minStorageBufferOffsetAlignment",
    "minUniformBufferOffsetAlignment",
)  # fmt: skip


@dataclass(frozen=True)
class MatrixShape:
    """A product that the matrix units compute: ``[m, k] x [k, n] + [m, n]``, and its types."""

    m: int
    n: int
    k: int
    left: str
    right: str
    added: str
    result: str
    saturating: bool

    def __str__(self) -> str:
        return f"{self.left}x{self.right}->{self.result} {self.m}x{self.n}x{self.k}"


@dataclass(frozen=True)
class Instance:
    """The process's Vulkan instance and its functions."""

    handle: Any
    functions: Any


@dataclass(frozen=True)
class Adapter:
    """A physical device that nybble can use."""

    info: DeviceInfo
    physical: Any
    functions: Any
    features: Features
    identity: bytes
    queue_family: int
    timestamp_bits: int
    timestamp_period: float
    matrix_shapes: tuple[MatrixShape, ...]
    subgroups: Subgroups

    @property
    def software(self) -> bool:
        """Whether the adapter is a CPU."""
        return self.info.kind == "cpu"

    @property
    def preferred(self) -> bool:
        """Whether ``auto`` takes it: a GPU whose driver is Vulkan's own, none on top of another."""
        return not self.software and "VK_KHR_portability_subset" not in self.features.extensions

    @property
    def unified(self) -> bool:
        """Whether the host and the adapter share one memory."""
        return self.info.kind in ("cpu", "integrated gpu")


@lru_cache(maxsize=1)
def instance() -> Instance:
    """The process's instance.

    Raises:
        DeviceError: no package, loader or driver, or one older than Vulkan 1.2.
    """
    try:
        return _open_instance()
    except OutOfDeviceMemoryError as error:
        # Loaders call it memory where a driver's file is no JSON, too.
        what = str(error).split(". ", maxsplit=1)[0]
        raise DeviceError(
            f"the Vulkan loader gave up ({what}), as it does where the file that describes a "
            f"driver is damaged; {_remedy('install the driver again')}"
        ) from None


def _remedy(otherwise: str) -> str:
    """What to do about drivers: look at the variable that names them, if there is one."""
    for name in _DRIVERS_NAMED:
        if os.environ.get(name):
            return f"correct or unset {name}={os.environ[name]}"
    return otherwise


def _open_instance() -> Instance:
    vk = bindings()
    functions = Functions(lambda name: vk.lib.vkGetInstanceProcAddr(vk.ffi.NULL, name))
    version = vk.ffi.new("uint32_t*")
    check(functions.vkEnumerateInstanceVersion(version), "asking for Vulkan's version")
    if _pair(version[0]) < _LOWEST:
        raise DeviceError(
            f"the Vulkan loader is of version {_dotted(version[0])}, {'.'.join(map(str, _LOWEST))} "
            "is needed; update it"
        )
    names, flags = _portability(functions)
    application = struct(
        "VkApplicationInfo", pApplicationName=vk.ffi.new("char[]", b"nybble"),
        apiVersion=min(version[0], vk.VK_MAKE_VERSION(*_NEWEST, 0)),
    )  # fmt: skip
    characters = [vk.ffi.new("char[]", name) for name in names]
    create = struct(
        "VkInstanceCreateInfo", pApplicationInfo=application, flags=flags,
        enabledExtensionCount=len(names), ppEnabledExtensionNames=vk.ffi.new("char*[]", characters),
    )  # fmt: skip
    handle = vk.ffi.new("VkInstance*")
    result = functions.vkCreateInstance(create, vk.ffi.NULL, handle)
    if result == vk.VK_ERROR_INCOMPATIBLE_DRIVER:
        raise DeviceError(f"no Vulkan driver is found; {_remedy('install the one of your GPU')}")
    check(result, "creating the Vulkan instance")
    own = Functions(lambda name: vk.lib.vkGetInstanceProcAddr(handle[0], name))
    return Instance(handle[0], own)


def _portability(functions: Any) -> tuple[list[bytes], int]:
    """Extensions and flags without which loaders hide drivers on top of other interfaces."""
    vk = bindings()
    found = enumerated(
        functions.vkEnumerateInstanceExtensionProperties, "VkExtensionProperties",
        "listing Vulkan's extensions", vk.ffi.NULL,
    )  # fmt: skip
    name = "VK_KHR_portability_enumeration"
    if name not in {text(item.extensionName) for item in found}:
        return [], 0
    return [name.encode()], int(vk.VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR)


@lru_cache(maxsize=1)
def _found() -> tuple[tuple[Adapter, ...], tuple[str, ...]]:
    """The usable adapters, and a sentence on each other or on why there are none."""
    vk = bindings()
    own = instance()
    handles = enumerated(
        own.functions.vkEnumeratePhysicalDevices, "VkPhysicalDevice",
        "listing Vulkan devices", own.handle,
    )  # fmt: skip
    usable: list[Adapter] = []
    refused: list[str] = []
    for handle in handles:
        properties = vk.ffi.new("VkPhysicalDeviceProperties*")
        own.functions.vkGetPhysicalDeviceProperties(handle, properties)
        try:
            usable.append(_describe(f"vulkan:{len(usable)}", handle, properties[0], own.functions))
        except NybbleError as error:
            refused.append(f"{text(properties.deviceName)}: {error}")
    return tuple(usable), tuple(refused)


def adapters() -> tuple[Adapter, ...]:
    """The usable adapters in the drivers' order; maybe none, see :func:`why_unusable`."""
    try:
        return _found()[0]
    except NybbleError:
        return ()


def why_unusable() -> tuple[str, ...]:
    """A sentence on each adapter that cannot be used, or on why Vulkan shows none at all."""
    try:
        usable, refused = _found()
    except NybbleError as error:
        return (str(error),)
    return refused or (() if usable else (_no_device(),))


def _no_device() -> str:
    return f"the Vulkan loader finds no device; {_remedy('install the driver of your GPU')}"


def find_adapter(name: str) -> Adapter:
    """The adapter called ``vulkan`` (the best) or ``vulkan:N``.

    Raises:
        DeviceError: there is none; the message lists those that exist and what the others lack.
    """
    ours = adapters()
    if name == "vulkan" and ours:
        return min(ours, key=lambda a: _PREFERENCE.index(a.info.kind))
    for adapter in ours:
        if adapter.info.name == name:
            return adapter
    listed = "; ".join(str(a.info) for a in ours) or "none"
    reasons = "".join(f" Not usable: {reason.rstrip('.')}." for reason in why_unusable())
    raise DeviceError(
        f"device {name!r} was not found; Vulkan adapters here: {listed}.{reasons} "
        "Run `nybble doctor` to see what is missing and how to get it, or use device='webgpu' "
        "or device='host'"
    )


def _describe(name: str, physical: Any, properties: Any, functions: Any) -> Adapter:
    if _pair(properties.apiVersion) < _LOWEST:
        raise DeviceError(
            f"its driver offers Vulkan {_dotted(properties.apiVersion)}, "
            f"{'.'.join(map(str, _LOWEST))} is needed"
        )
    features = find_features(functions, physical, properties.apiVersion)
    if features.missing:
        raise DeviceError(f"its driver lacks the feature {', '.join(features.missing)}")
    family, bits = _compute_family(functions, physical)
    driver, identity = _driver(functions, physical, properties)
    subgroups = find_subgroups(functions, physical, features)
    # A tile that is shared out among 32 threads is wrong on a subgroup of another size.
    usable = subgroups.offers(MATRIX_SUBGROUP)
    shapes = _matrix_shapes(functions, physical, features) if usable else ()
    info = DeviceInfo(
        name=name,
        adapter=text(properties.deviceName),
        backend=f"Vulkan {_dotted(properties.apiVersion)}",
        kind=_KINDS.get(properties.deviceType, "unknown"),
        driver=driver,
        limits=_limits(functions, physical, properties.limits, features),
        features=tuple(sorted((*features.names, *map(str, shapes)))),
    )
    return Adapter(
        info, physical, functions, features, identity, family, bits,
        properties.limits.timestampPeriod * 1e-9, shapes, subgroups,
    )  # fmt: skip


def _compute_family(functions: Any, physical: Any) -> tuple[int, int]:
    vk = bindings()
    families = enumerated(
        functions.vkGetPhysicalDeviceQueueFamilyProperties, "VkQueueFamilyProperties",
        "listing queues", physical,
    )  # fmt: skip
    for index, family in enumerate(families):
        if family.queueFlags & vk.VK_QUEUE_COMPUTE_BIT:
            return index, int(family.timestampValidBits)
    raise DeviceError("it has no queue for compute shaders")


def _driver(functions: Any, physical: Any, properties: Any) -> tuple[str, bytes]:
    """The driver in words, and the 24 bytes by which its pipeline caches are known."""
    named = struct("VkPhysicalDeviceVulkan12Properties")
    functions.vkGetPhysicalDeviceProperties2(
        physical, struct("VkPhysicalDeviceProperties2", pNext=named)
    )
    described = f"{text(named.driverName)} {text(named.driverInfo)}".strip()
    numbers = (properties.vendorID, properties.deviceID)
    identity = b"".join(number.to_bytes(4, "little") for number in numbers)
    return described, identity + bytes(properties.pipelineCacheUUID)


def _limits(functions: Any, physical: Any, limits: Any, features: Features) -> dict[str, int]:
    values = {name: int(getattr(limits, name)) for name in _LIMITS}
    values["maxComputeWorkGroupCount"] = min(limits.maxComputeWorkGroupCount)
    values["maxComputeWorkGroupSize"] = min(limits.maxComputeWorkGroupSize[0:2])
    maintenance3 = struct("VkPhysicalDeviceMaintenance3Properties")
    chain = maintenance3
    if "maintenance4" in features.names:
        chain = struct("VkPhysicalDeviceMaintenance4Properties", pNext=maintenance3)
    functions.vkGetPhysicalDeviceProperties2(
        physical, struct("VkPhysicalDeviceProperties2", pNext=chain)
    )
    values["maxMemoryAllocationSize"] = int(maintenance3.maxMemoryAllocationSize)
    values["maxBufferSize"] = int(
        chain.maxBufferSize if chain is not maintenance3 else maintenance3.maxMemoryAllocationSize
    )
    return values


def _matrix_shapes(functions: Any, physical: Any, features: Features) -> tuple[MatrixShape, ...]:
    if "cooperativeMatrix" not in features.names:
        return ()
    bfloat16 = "shaderBFloat16CooperativeMatrix" in features.names
    found = enumerated(
        functions.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR,
        "VkCooperativeMatrixPropertiesKHR", "listing matrix shapes", physical,
    )  # fmt: skip
    shapes = []
    for item in found:
        left, right, added = map(_COMPONENTS.get, (item.AType, item.BType, item.CType))
        result = _COMPONENTS.get(item.ResultType)
        if item.scope != _SUBGROUP_SCOPE or not (left and right and added and result):
            continue
        if left == "bf16" and not bfloat16:
            continue
        saturating = bool(item.saturatingAccumulation)
        shapes.append(
            MatrixShape(item.MSize, item.NSize, item.KSize, left, right, added, result, saturating)
        )
    return tuple(shapes)


def _pair(version: int) -> tuple[int, int]:
    return version >> 22 & 0x7F, version >> 12 & 0x3FF


def _dotted(version: int) -> str:
    return ".".join(map(str, (*_pair(version), version & 0xFFF)))
