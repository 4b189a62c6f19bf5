"""Which features a Vulkan device offers, which are needed, and the chain that turns them on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .api import bindings, enumerated, struct, text

__all__ = ["Features", "enabling_chain", "find_features"]

_DOT_PRODUCT = "VK_KHR_shader_integer_dot_product"
_COOPERATIVE_MATRIX = "VK_KHR_cooperative_matrix"
_PORTABILITY = "VK_KHR_portability_subset"
_BFLOAT16 = "VK_KHR_shader_bfloat16"

_REQUIRED = ("timelineSemaphore",)
"""Named in the error where a device lacks one."""
_WANTED: Mapping[str, tuple[str, ...]] = {
    # WGSL promises that no access leaves a buffer; so does this.
    "VkPhysicalDeviceFeatures": ("robustBufferAccess",),
    "VkPhysicalDeviceVulkan11Features": ("storageBuffer16BitAccess",),
    "VkPhysicalDeviceVulkan12Features": (
        "timelineSemaphore", "shaderInt8", "shaderFloat16", "storageBuffer8BitAccess",
        "vulkanMemoryModel", "vulkanMemoryModelDeviceScope", "shaderSubgroupExtendedTypes",
    ),
    "VkPhysicalDeviceVulkan13Features": (
        "subgroupSizeControl", "computeFullSubgroups", "shaderIntegerDotProduct", "maintenance4",
    ),
    "VkPhysicalDeviceShaderIntegerDotProductFeatures": ("shaderIntegerDotProduct",),
    "VkPhysicalDeviceCooperativeMatrixFeaturesKHR": ("cooperativeMatrix",),
    "VkPhysicalDeviceShaderBfloat16FeaturesKHR": (
        "shaderBFloat16Type", "shaderBFloat16CooperativeMatrix",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class _Twin:
    """A struct that the bindings know, of the form of one that is younger than they are."""

    name: str
    structure_type: int
    fields: Mapping[str, str]


_YOUNGER = {
    "VkPhysicalDeviceShaderBfloat16FeaturesKHR": _Twin(
        "VkPhysicalDeviceVulkanMemoryModelFeatures",
        1000141000,
        {
            "shaderBFloat16Type": "vulkanMemoryModel",
            "shaderBFloat16CooperativeMatrix": "vulkanMemoryModelAvailabilityVisibilityChains",
        },
    )
}


@dataclass(frozen=True)
class Features:
    """What a device offers of what nybble uses: feature names, and extensions to turn on."""

    names: tuple[str, ...]
    extensions: tuple[str, ...]
    structs: tuple[str, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """The needed features that the device lacks."""
        return tuple(name for name in _REQUIRED if name not in self.names)


def find_features(functions: Any, physical: Any, version: int) -> Features:
    """Ask a physical device of Vulkan 1.2 or newer."""
    found = enumerated(
        functions.vkEnumerateDeviceExtensionProperties, "VkExtensionProperties",
        "listing a device's extensions", physical, bindings().ffi.NULL,
    )  # fmt: skip
    offered = {text(item.extensionName) for item in found}
    extensions = [name for name in (_COOPERATIVE_MATRIX, _PORTABILITY) if name in offered]
    structs = ["VkPhysicalDeviceVulkan11Features", "VkPhysicalDeviceVulkan12Features"]
    if version >= (1 << 22 | 3 << 12):
        structs.append("VkPhysicalDeviceVulkan13Features")
    elif _DOT_PRODUCT in offered:
        structs.append("VkPhysicalDeviceShaderIntegerDotProductFeatures")
        extensions.append(_DOT_PRODUCT)
    if _COOPERATIVE_MATRIX in offered:
        structs.append("VkPhysicalDeviceCooperativeMatrixFeaturesKHR")
        if _BFLOAT16 in offered:
            structs.append("VkPhysicalDeviceShaderBfloat16FeaturesKHR")
            extensions.append(_BFLOAT16)
    head, chain = _chain(structs, ())
    functions.vkGetPhysicalDeviceFeatures2(physical, head)
    names = [n for n in _WANTED["VkPhysicalDeviceFeatures"] if getattr(head.features, n)]
    for name, item in zip(structs, chain, strict=True):
        names += [n for n in _WANTED[name] if getattr(item, _field(name, n))]
    return Features(tuple(dict.fromkeys(names)), tuple(extensions), tuple(structs))


def enabling_chain(features: Features) -> Any:
    """The ``pNext`` chain of a device's creation."""
    return _chain(features.structs, features.names)[0]


def _field(name: str, feature: str) -> str:
    """A feature's field in what stands for its struct."""
    return _YOUNGER[name].fields[feature] if name in _YOUNGER else feature


def _chain(structs: Iterable[str], names: Iterable[str]) -> tuple[Any, list[Any]]:
    on = frozenset(names)
    following: Any = bindings().ffi.NULL
    items: list[Any] = []
    for name in reversed(tuple(structs)):
        values = {_field(name, n): 1 for n in _WANTED[name] if n in on}
        twin = _YOUNGER.get(name)
        following = struct(twin.name if twin else name, pNext=following, **values)
        if twin:
            following.sType = twin.structure_type
        items.append(following)
    core = {n: 1 for n in _WANTED["VkPhysicalDeviceFeatures"] if n in on}
    head = struct("VkPhysicalDeviceFeatures2", pNext=following, features=core)
    return head, items[::-1]
