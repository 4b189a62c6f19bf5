"""Compute pipelines and the layouts of their bindings, made once a device."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from nybble import shaders
from nybble.errors import DeviceError, DeviceLostError, NybbleError, OutOfDeviceMemoryError

from .api import array_of, bindings, check, struct
from .cache import PipelineStore
from .subgroups import MATRIX_SUBGROUP, stage_options

if TYPE_CHECKING:
    from .device import VulkanDevice

__all__ = ["DescriptorSets", "Layout", "Pipelines"]

_STORAGE_BUFFER, _UNIFORM_BUFFER = 7, 6
_COMPUTE_BIT = 0x20
_SAVE_SECONDS = 10.0
"""The cache's file is written no more often; a device that closes always writes."""


class Layout:
    """Bindings of a kernel: storage buffers, then the uniform record."""

    def __init__(self, device: VulkanDevice, storages: int) -> None:
        ffi, vk = bindings().ffi, device.vk
        kinds = [_STORAGE_BUFFER] * storages + [_UNIFORM_BUFFER]
        what = f"{device.info.name}: creating a layout of {storages} buffers"
        entries = [
            {"binding": i, "descriptorType": kind, "descriptorCount": 1, "stageFlags": _COMPUTE_BIT}
            for i, kind in enumerate(kinds)
        ]
        create = struct(
            "VkDescriptorSetLayoutCreateInfo", bindingCount=len(entries),
            pBindings=ffi.new("VkDescriptorSetLayoutBinding[]", entries),
        )  # fmt: skip
        self.sets = ffi.new("VkDescriptorSetLayout*")
        check(vk.vkCreateDescriptorSetLayout(device.handle, create, ffi.NULL, self.sets), what)
        whole = struct("VkPipelineLayoutCreateInfo", setLayoutCount=1, pSetLayouts=self.sets)
        self.pipeline = ffi.new("VkPipelineLayout*")
        check(vk.vkCreatePipelineLayout(device.handle, whole, ffi.NULL, self.pipeline), what)

    def close(self, device: VulkanDevice) -> None:
        """Free both layouts."""
        null = bindings().ffi.NULL
        device.vk.vkDestroyPipelineLayout(device.handle, self.pipeline[0], null)
        device.vk.vkDestroyDescriptorSetLayout(device.handle, self.sets[0], null)


class Pipelines:
    """Pipelines by shader text, with the driver's cache of what it compiled."""

    def __init__(self, device: VulkanDevice, store: PipelineStore) -> None:
        self._device = device
        self._store = store
        self._layouts: dict[int, Layout] = {}
        self._pipelines: dict[str, Any] = {}
        self._cache = self._new_cache(store.load())
        self._unsaved = 0
        self._saved_at = time.monotonic()

    def layout(self, storages: int) -> Layout:
        """The layout of that many storage buffers and a record."""
        if storages not in self._layouts:
            self._layouts[storages] = Layout(self._device, storages)
        return self._layouts[storages]

    def pipeline(self, shader: str, label: str, storages: int) -> Any:
        """The pipeline of a shader.

        Raises:
            DeviceError: the shader cannot be compiled.
        """
        if shader not in self._pipelines:
            try:
                self._pipelines[shader] = self._compile(shader, label, storages)
            except (DeviceLostError, OutOfDeviceMemoryError):
                raise
            except NybbleError as error:
                raise DeviceError(
                    f"{self._device.info.name} refused the shader of {label}: {error}. This is a "
                    "defect of nybble or of the driver; please report it with `nybble doctor`'s "
                    "output"
                ) from None
            self._unsaved += 1
        return self._pipelines[shader]

    def save_now_and_then(self) -> None:
        """Write what is new to disk, unless that was done a moment ago."""
        if self._unsaved and time.monotonic() - self._saved_at > _SAVE_SECONDS:
            self.save()

    def save(self) -> None:
        """Write what is new to disk."""
        if not self._unsaved or self._device.lost:
            return
        self._unsaved, self._saved_at = 0, time.monotonic()
        ffi, vk, handle = bindings().ffi, self._device.vk, self._device.handle
        size = ffi.new("size_t*")
        check(vk.vkGetPipelineCacheData(handle, self._cache, size, ffi.NULL), "reading the cache")
        data = ffi.new("char[]", size[0])
        check(vk.vkGetPipelineCacheData(handle, self._cache, size, data), "reading the cache")
        self._store.save(bytes(ffi.buffer(data, size[0])))

    def close(self) -> None:
        """Free all; the cache is written."""
        self.save()
        vk, handle, null = self._device.vk, self._device.handle, bindings().ffi.NULL
        for pipeline in self._pipelines.values():
            vk.vkDestroyPipeline(handle, pipeline, null)
        for layout in self._layouts.values():
            layout.close(self._device)
        vk.vkDestroyPipelineCache(handle, self._cache, null)

    def _new_cache(self, data: bytes) -> Any:
        ffi, device = bindings().ffi, self._device
        cache = ffi.new("VkPipelineCache*")
        create = struct(
            "VkPipelineCacheCreateInfo", initialDataSize=len(data),
            pInitialData=ffi.from_buffer(data) if data else ffi.NULL,
        )  # fmt: skip
        result = device.vk.vkCreatePipelineCache(device.handle, create, ffi.NULL, cache)
        if result < 0 and data:
            return self._new_cache(b"")
        check(result, f"{device.info.name}: creating a pipeline cache")
        return cache[0]

    def _compile(self, shader: str, label: str, storages: int) -> Any:
        ffi, device = bindings().ffi, self._device
        code = shaders.spirv(shader)
        words = ffi.new("uint32_t[]", len(code) // 4)
        ffi.memmove(words, code, len(code))
        module = ffi.new("VkShaderModule*")
        create = struct("VkShaderModuleCreateInfo", codeSize=len(code), pCode=words)
        check(
            device.vk.vkCreateShaderModule(device.handle, create, ffi.NULL, module),
            f"compiling {label}",
        )
        entry = ffi.new("char[]", b"main")
        size = MATRIX_SUBGROUP if shaders.uses_matrix_units(shader) else None
        stage = struct(
            "VkPipelineShaderStageCreateInfo", stage=_COMPUTE_BIT, module=module[0], pName=entry,
            **stage_options(device.adapter.subgroups, size),
        )  # fmt: skip
        whole = struct(
            "VkComputePipelineCreateInfo", stage=stage[0],
            layout=self.layout(storages).pipeline[0],
        )  # fmt: skip
        pipeline = ffi.new("VkPipeline*")
        try:
            check(
                device.vk.vkCreateComputePipelines(
                    device.handle, self._cache, 1, whole, ffi.NULL, pipeline
                ),
                f"compiling {label}",
            )
        finally:
            device.vk.vkDestroyShaderModule(device.handle, module[0], ffi.NULL)
            del stage
        return pipeline[0]


class DescriptorSets:
    """The descriptor sets of one plan: each dispatch's buffers."""

    def __init__(self, device: VulkanDevice, storages: list[int]) -> None:
        ffi = bindings().ffi
        self._device = device
        self._pool: Any = None
        if not storages:
            return
        # A count of zero is not allowed, and every set has its record.
        counts = {_STORAGE_BUFFER: sum(storages), _UNIFORM_BUFFER: len(storages)}
        sizes = [{"type": k, "descriptorCount": n} for k, n in counts.items() if n]
        create = struct(
            "VkDescriptorPoolCreateInfo", maxSets=len(storages), poolSizeCount=len(sizes),
            pPoolSizes=ffi.new("VkDescriptorPoolSize[]", sizes),
        )  # fmt: skip
        pool = ffi.new("VkDescriptorPool*")
        check(
            device.vk.vkCreateDescriptorPool(device.handle, create, ffi.NULL, pool),
            f"{device.info.name}: creating {len(storages)} descriptor sets",
        )
        self._pool = pool[0]

    def bind(self, layout: Layout, ranges: list[tuple[Any, int, int]]) -> Any:
        """A set over (buffer, offset, bytes) each, the record last."""
        ffi, device = bindings().ffi, self._device
        allocate = struct(
            "VkDescriptorSetAllocateInfo", descriptorPool=self._pool, descriptorSetCount=1,
            pSetLayouts=layout.sets,
        )  # fmt: skip
        result = ffi.new("VkDescriptorSet*")
        check(
            device.vk.vkAllocateDescriptorSets(device.handle, allocate, result),
            f"{device.info.name}: allocating a descriptor set",
        )
        infos = ffi.new("VkDescriptorBufferInfo[]", ranges)
        last = len(ranges) - 1
        writes = [
            struct(
                "VkWriteDescriptorSet", dstSet=result[0], dstBinding=i, descriptorCount=1,
                descriptorType=_STORAGE_BUFFER if i < last else _UNIFORM_BUFFER,
                pBufferInfo=infos + i,
            )
            for i in range(len(ranges))
        ]  # fmt: skip
        device.vk.vkUpdateDescriptorSets(
            device.handle, len(writes), array_of("VkWriteDescriptorSet", writes), 0, ffi.NULL
        )
        return result

    def close(self) -> None:
        """Free all sets; none may be in use."""
        if self._pool is not None:
            null = bindings().ffi.NULL
            self._device.vk.vkDestroyDescriptorPool(self._device.handle, self._pool, null)
            self._pool = None
