"""Memory on a Vulkan device: buffers are ranges of a few large blocks."""

from __future__ import annotations

import bisect
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from nybble.errors import OutOfDeviceMemoryError

from .api import bindings, check, struct

if TYPE_CHECKING:
    from .device import VulkanDevice

__all__ = [
    "ALIGNMENT", "Allocation", "Block", "Bytes", "Memory", "MemoryTypes", "Use", "free_range",
    "take_range",
]  # fmt: skip

Use = Literal["device", "upload", "download"]
Bytes = npt.NDArray[np.uint8]

ALIGNMENT = 256
"""Of every range: Vulkan's largest minimum offset alignment of a binding."""
BLOCK_SIZE: Mapping[Use, int] = {"device": 64 << 20, "upload": 8 << 20, "download": 8 << 20}
"""Bytes that are taken from the driver at once, unless more is needed."""
_OUT_OF_HOST_MEMORY = -1
_STORAGE = 0x20 | 0x10 | 0x2 | 0x1  # storage, uniform, transfer destination and source


@dataclass(eq=False)
class Block:
    """One allocation of the driver with one buffer over all of it; ``free`` is (offset, size)."""

    buffer: Any
    memory: Any
    size: int
    view: Bytes | None
    free: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Allocation:
    """A range of a block. ``view`` are its bytes where the host sees them."""

    block: Block
    offset: int
    size: int

    @property
    def view(self) -> Bytes | None:
        """The bytes, shared with the device."""
        if self.block.view is None:
            return None
        return self.block.view[self.offset : self.offset + self.size]


def take_range(free: list[tuple[int, int]], size: int) -> int | None:
    """Take ``size`` bytes from the first free range that holds them; None where none does."""
    for index, (offset, room) in enumerate(free):
        if room >= size:
            free[index : index + 1] = [(offset + size, room - size)] if room > size else []
            return offset
    return None


def free_range(free: list[tuple[int, int]], offset: int, size: int) -> None:
    """Give a range back, joined with its free neighbours."""
    at = bisect.bisect(free, (offset, size))
    if at < len(free) and offset + size == free[at][0]:
        size += free.pop(at)[1]
    if at and sum(free[at - 1]) == offset:
        offset, before = free.pop(at - 1)
        size += before
        at -= 1
    free.insert(at, (offset, size))


class Memory:
    """Gives out ranges of one use: ``device``, or the host's side of copies to and from it."""

    def __init__(self, device: VulkanDevice, use: Use) -> None:
        self._device = device
        self._use = use
        self._blocks: list[Block] = []
        self._lock = threading.Lock()

    def allocate(self, size: int) -> Allocation:
        """A range of at least ``size`` bytes; what it holds is undefined.

        Raises:
            OutOfDeviceMemoryError: the device cannot hold it.
        """
        largest = self._device.capabilities.max_buffer
        if size > largest:
            raise OutOfDeviceMemoryError(
                f"a buffer of {size:,} bytes is needed; {self._device.info.name} allows "
                f"{largest:,}. Use a smaller batch or device='host'"
            )
        size = max(ALIGNMENT, -(-size // ALIGNMENT) * ALIGNMENT)
        with self._lock:
            for block in self._blocks:
                offset = take_range(block.free, size)
                if offset is not None:
                    return Allocation(block, offset, size)
            block = self._new_block(size)
            self._blocks.append(block)
            offset = take_range(block.free, size)
        assert offset is not None
        return Allocation(block, offset, size)

    def free(self, allocation: Allocation) -> None:
        """Give a range back; an empty block is kept only where it is the last."""
        block = allocation.block
        with self._lock:
            free_range(block.free, allocation.offset, allocation.size)
            empty = block.free == [(0, block.size)]
            if empty and (len(self._blocks) > 1 or block.size > BLOCK_SIZE[self._use]):
                self._blocks.remove(block)
                self._destroy(block)

    def close(self) -> None:
        """Free every block, whatever lies in it."""
        while self._blocks:
            self._destroy(self._blocks.pop())

    @property
    def held(self) -> int:
        """Bytes taken from the driver."""
        return sum(block.size for block in self._blocks)

    def _new_block(self, size: int) -> Block:
        try:
            usual = min(BLOCK_SIZE[self._use], self._device.capabilities.max_buffer)
            return self._create(max(size, usual))
        except OutOfDeviceMemoryError:
            if size >= usual:
                raise
        return self._create(size)

    def _create(self, size: int) -> Block:
        device, ffi = self._device, bindings().ffi
        what = f"{device.info.name}: {size:,} bytes of {self._use} memory"
        buffer = ffi.new("VkBuffer*")
        create = struct("VkBufferCreateInfo", size=size, usage=_STORAGE)
        check(device.vk.vkCreateBuffer(device.handle, create, ffi.NULL, buffer), what)
        needs = ffi.new("VkMemoryRequirements*")
        device.vk.vkGetBufferMemoryRequirements(device.handle, buffer[0], needs)
        kind, mapped = device.memory_types.choose(self._use, needs.memoryTypeBits)
        # A software adapter promises more than there is; the system then ends the process.
        if device.capabilities.software and device.held + size > device.memory_types.heap(kind):
            device.vk.vkDestroyBuffer(device.handle, buffer[0], ffi.NULL)
            check(_OUT_OF_HOST_MEMORY, what)
        memory = ffi.new("VkDeviceMemory*")
        allocate = struct("VkMemoryAllocateInfo", allocationSize=needs.size, memoryTypeIndex=kind)
        try:
            check(device.vk.vkAllocateMemory(device.handle, allocate, ffi.NULL, memory), what)
            check(device.vk.vkBindBufferMemory(device.handle, buffer[0], memory[0], 0), what)
            view = self._map(memory[0], size, what) if mapped else None
        except BaseException:
            device.vk.vkDestroyBuffer(device.handle, buffer[0], ffi.NULL)
            device.vk.vkFreeMemory(device.handle, memory[0], ffi.NULL)
            raise
        return Block(buffer[0], memory[0], size, view, [(0, size // ALIGNMENT * ALIGNMENT)])

    def _map(self, memory: Any, size: int, what: str) -> Bytes:
        device, ffi = self._device, bindings().ffi
        address = ffi.new("void**")
        check(device.vk.vkMapMemory(device.handle, memory, 0, size, 0, address), what)
        # Mesa's software driver calls it a success, and hands on what mmap gave it.
        if int(ffi.cast("intptr_t", address[0])) in (0, -1):
            check(_OUT_OF_HOST_MEMORY, what)
        return np.frombuffer(ffi.buffer(address[0], size), np.uint8)

    def _destroy(self, block: Block) -> None:
        # Freed memory is unmapped by Vulkan itself.
        device, null = self._device, bindings().ffi.NULL
        block.view = None
        device.vk.vkDestroyBuffer(device.handle, block.buffer, null)
        device.vk.vkFreeMemory(device.handle, block.memory, null)


class MemoryTypes:
    """The kinds of memory of a device and which serves what."""

    _LOCAL, _VISIBLE, _COHERENT, _CACHED = 1, 2, 4, 8

    def __init__(self, functions: Any, physical: Any, *, unified: bool) -> None:
        properties = bindings().ffi.new("VkPhysicalDeviceMemoryProperties*")
        functions.vkGetPhysicalDeviceMemoryProperties(physical, properties)
        self._flags = [
            int(properties.memoryTypes[i].propertyFlags) for i in range(properties.memoryTypeCount)
        ]
        self._heaps = [
            int(properties.memoryHeaps[properties.memoryTypes[i].heapIndex].size)
            for i in range(properties.memoryTypeCount)
        ]
        mapped = self._VISIBLE | self._COHERENT
        local = [self._LOCAL | mapped, self._LOCAL] if unified else [self._LOCAL]
        self._wishes: dict[Use, list[int]] = {
            "device": [*local, 0],
            "upload": [mapped],
            "download": [mapped | self._CACHED, mapped],
        }

    def heap(self, kind: int) -> int:
        """Bytes of the heap that memory of a type is taken from."""
        return self._heaps[kind]

    def choose(self, use: Use, allowed: int) -> tuple[int, bool]:
        """A type of ``allowed``'s bits, and whether the host is to map it."""
        mapped = self._VISIBLE | self._COHERENT
        for wish in self._wishes[use]:
            for index, flags in enumerate(self._flags):
                if allowed >> index & 1 and flags & wish == wish:
                    return index, use != "device" or wish & mapped == mapped
        raise OutOfDeviceMemoryError(f"the device has no memory for {use} buffers")
