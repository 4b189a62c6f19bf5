"""WebGPU through wgpu-py (wgpu-native: Vulkan, Metal, D3D12) and, where installed, Dawn."""

from .adapters import PROVIDERS, Adapter, adapters, find_adapter
from .device import WebGpuDevice

__all__ = ["PROVIDERS", "Adapter", "WebGpuDevice", "adapters", "find_adapter"]
