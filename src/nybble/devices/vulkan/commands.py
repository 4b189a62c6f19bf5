"""Records command buffers: copies, dispatches, barriers and timestamps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .api import bindings, check, struct
from .memory import Allocation

if TYPE_CHECKING:
    from .device import VulkanDevice

__all__ = ["BoundDispatch", "CommandPool", "Recorder"]

_COMPUTE_STAGE, _TRANSFER_STAGE, _HOST_STAGE, _BOTTOM = 0x800, 0x1000, 0x4000, 0x2000
_UNIFORM_READ, _SHADER_READ, _SHADER_WRITE = 0x8, 0x20, 0x40
_TRANSFER_READ, _TRANSFER_WRITE, _HOST_READ = 0x800, 0x1000, 0x2000
_WHOLE_STAGES = _COMPUTE_STAGE | _TRANSFER_STAGE
_WHOLE_WRITES = _SHADER_WRITE | _TRANSFER_WRITE
_WHOLE_ACCESS = _WHOLE_WRITES | _SHADER_READ | _UNIFORM_READ | _TRANSFER_READ


@dataclass(frozen=True)
class BoundDispatch:
    """A dispatch with its Vulkan objects; ``waits`` where a barrier goes before it."""

    pipeline: Any
    layout: Any
    descriptors: Any
    grid: tuple[int, int, int]
    waits: bool


class CommandPool:
    """Command buffers of one owner, reused and freed together."""

    def __init__(self, device: VulkanDevice) -> None:
        self.device = device
        self._null = bindings().ffi.NULL
        self._idle: list[Any] = []
        self._recorded: list[Any] = []
        self._handle = bindings().ffi.new("VkCommandPool*")
        create = struct("VkCommandPoolCreateInfo", queueFamilyIndex=device.queue_family)
        check(
            device.vk.vkCreateCommandPool(device.handle, create, self._null, self._handle),
            f"{device.info.name}: creating a command pool",
        )

    def record(self) -> Recorder:
        """A command buffer, ready to be recorded."""
        if not self._idle:
            self._idle.append(self._allocate())
        self._recorded.append(self._idle.pop())
        return Recorder(self.device, self._recorded[-1])

    def reset(self) -> None:
        """Forget what was recorded; none of it may be in use."""
        check(
            self.device.vk.vkResetCommandPool(self.device.handle, self._handle[0], 0),
            f"{self.device.info.name}: resetting a command pool",
        )
        self._idle += self._recorded
        self._recorded.clear()

    def _allocate(self) -> Any:
        commands = bindings().ffi.new("VkCommandBuffer*")
        allocate = struct(
            "VkCommandBufferAllocateInfo", commandPool=self._handle[0], commandBufferCount=1
        )
        check(
            self.device.vk.vkAllocateCommandBuffers(self.device.handle, allocate, commands),
            f"{self.device.info.name}: allocating a command buffer",
        )
        return commands[0]

    def close(self) -> None:
        """Free the pool and its command buffers; none may be in use."""
        self.device.vk.vkDestroyCommandPool(self.device.handle, self._handle[0], self._null)


class Recorder:
    """One command buffer under way. It begins behind everything submitted before it."""

    def __init__(self, device: VulkanDevice, commands: Any) -> None:
        self._device = device
        self._vk = device.vk
        self._null = bindings().ffi.NULL
        self.commands = commands
        check(
            self._vk.vkBeginCommandBuffer(commands, struct("VkCommandBufferBeginInfo")),
            f"{device.info.name}: recording",
        )
        self.barrier()

    def barrier(self) -> None:
        """Everything before is done, and seen by everything after."""
        self._wait(_WHOLE_STAGES, _WHOLE_WRITES, _WHOLE_STAGES, _WHOLE_ACCESS)

    def copy(
        self, source: Allocation, target: Allocation, ranges: Iterable[tuple[int, ...]]
    ) -> None:
        """Copy (offset in the source, offset in the target, bytes) each."""
        regions = [
            (source.offset + start, target.offset + to, size) for start, to, size in ranges if size
        ]
        if regions:
            self._vk.vkCmdCopyBuffer(
                self.commands, source.block.buffer, target.block.buffer, len(regions),
                bindings().ffi.new("VkBufferCopy[]", regions),
            )  # fmt: skip

    def clear(self, target: Allocation) -> None:
        """Fill with zeros."""
        self._vk.vkCmdFillBuffer(self.commands, target.block.buffer, target.offset, target.size, 0)

    def dispatch(self, items: Iterable[BoundDispatch]) -> None:
        """Dispatches, with the barriers that they ask for."""
        pipeline = None
        for item in items:
            if item.waits:
                self._wait(
                    _COMPUTE_STAGE, _SHADER_WRITE, _COMPUTE_STAGE, _SHADER_READ | _SHADER_WRITE
                )
            if item.pipeline is not pipeline:
                pipeline = item.pipeline
                self._vk.vkCmdBindPipeline(self.commands, 1, pipeline)
            self._vk.vkCmdBindDescriptorSets(
                self.commands, 1, item.layout, 0, 1, item.descriptors, 0, self._null
            )
            self._vk.vkCmdDispatch(self.commands, *item.grid)

    def reset_queries(self, pool: Any, count: int) -> None:
        """Make a pool's first ``count`` timestamps writable."""
        self._vk.vkCmdResetQueryPool(self.commands, pool, 0, count)

    def timestamp(self, pool: Any, index: int) -> None:
        """Write a timestamp when everything before is done."""
        self._vk.vkCmdWriteTimestamp(self.commands, _BOTTOM, pool, index)

    def end(self) -> Any:
        """The command buffer; what it copied is then seen by a host that waits for it."""
        self._wait(_TRANSFER_STAGE | _COMPUTE_STAGE, _WHOLE_WRITES, _HOST_STAGE, _HOST_READ)
        check(self._vk.vkEndCommandBuffer(self.commands), f"{self._device.info.name}: recording")
        return self.commands

    def _wait(self, before: int, written: int, after: int, access: int) -> None:
        memory = struct("VkMemoryBarrier", srcAccessMask=written, dstAccessMask=access)
        self._vk.vkCmdPipelineBarrier(
            self.commands, before, after, 0, 1, memory, 0, self._null, 0, self._null
        )
