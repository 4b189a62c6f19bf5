"""How many threads run in step, and how a kernel that depends on the number asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .api import struct
from .features import Features

__all__ = ["MATRIX_SUBGROUP", "Subgroups", "find_subgroups", "stage_options"]

MATRIX_SUBGROUP = 32
"""Threads of a subgroup in the kernels for matrix units, which share their tiles out by it."""
_COMPUTE_BIT = 0x20
_REQUIRE_FULL_SUBGROUPS = 0x2
_SHUFFLE_OPERATIONS = 0x10


@dataclass(frozen=True)
class Subgroups:
    """A device's subgroups: the usual size, and those that a pipeline may require.

    ``smallest`` and ``largest`` are 0 where the size cannot be required; ``full`` says whether a
    pipeline may require that no subgroup has idle threads, ``shuffles`` whether its threads may
    read each other's registers.
    """

    usual: int
    smallest: int = 0
    largest: int = 0
    full: bool = False
    shuffles: bool = True

    def can_require(self, size: int) -> bool:
        """Whether a pipeline may require subgroups of ``size`` threads."""
        return 0 < self.smallest <= size <= self.largest

    def offers(self, size: int) -> bool:
        """Whether a kernel that needs subgroups of ``size`` threads gets them."""
        return self.can_require(size) or self.usual == size


def find_subgroups(functions: Any, physical: Any, features: Features) -> Subgroups:
    """Ask a physical device of Vulkan 1.2 or newer."""
    usual = struct("VkPhysicalDeviceSubgroupProperties")
    chain = usual
    settable = "subgroupSizeControl" in features.names
    if settable:
        chain = struct("VkPhysicalDeviceSubgroupSizeControlProperties", pNext=usual)
    functions.vkGetPhysicalDeviceProperties2(
        physical, struct("VkPhysicalDeviceProperties2", pNext=chain)
    )
    full = "computeFullSubgroups" in features.names
    shuffles = bool(
        usual.supportedStages & _COMPUTE_BIT and usual.supportedOperations & _SHUFFLE_OPERATIONS
    )
    if settable and chain.requiredSubgroupSizeStages & _COMPUTE_BIT:
        smallest, largest = int(chain.minSubgroupSize), int(chain.maxSubgroupSize)
        return Subgroups(int(usual.subgroupSize), smallest, largest, full, shuffles)
    return Subgroups(int(usual.subgroupSize), full=full, shuffles=shuffles)


def stage_options(subgroups: Subgroups, size: int | None) -> dict[str, Any]:
    """Fields of a compute stage that make its subgroups full and of ``size`` threads.

    None are needed where ``size`` is None, or where the device can promise neither.
    """
    if size is None:
        return {}
    options: dict[str, Any] = {}
    if subgroups.can_require(size):
        options["pNext"] = struct(
            "VkPipelineShaderStageRequiredSubgroupSizeCreateInfo", requiredSubgroupSize=size
        )
    if subgroups.full:
        options["flags"] = _REQUIRE_FULL_SUBGROUPS
    return options
