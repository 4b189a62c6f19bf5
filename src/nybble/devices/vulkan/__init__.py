"""Vulkan through the ``vulkan`` package: command buffers recorded once a plan and resubmitted."""

from .adapters import Adapter, MatrixShape, adapters, find_adapter, why_unusable
from .device import VulkanDevice

__all__ = [
    "Adapter", "MatrixShape", "VulkanDevice", "adapters", "find_adapter", "why_unusable",
]  # fmt: skip
