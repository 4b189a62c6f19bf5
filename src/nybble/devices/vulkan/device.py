"""A Vulkan device: one compute queue, its memory, its pipelines."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any, get_args

from nybble.devices.base import States
from nybble.errors import DeviceLostError, NybbleError, OutOfDeviceMemoryError
from nybble.plan import Capabilities, Plan

from .adapters import Adapter, MatrixShape
from .api import Functions, bindings, check, struct
from .cache import PipelineStore, cache_folder
from .executable import VulkanExecutable
from .features import enabling_chain
from .memory import Memory, MemoryTypes, Use
from .pipelines import Pipelines
from .states import VulkanStates
from .transfer import Transfer

__all__ = ["VulkanDevice"]

ADDRESSABLE = 2**32 - 1
"""Bytes of one binding that 32-bit word indices reach comfortably, whatever the adapter offers."""
_WAIT_NANOSECONDS = 100_000_000
"""Of one wait; between two Python can take an interrupt."""
_TIMEOUT, _DEVICE_LOST = 2, -4
_SPIN_SECONDS = 200e-6
"""How long a wait asks before it sleeps: a short run is over before a sleeper would be woken."""
_LOST_COUNTER = 2**64 - 1
"""What some drivers count on a timeline whose device is gone."""


class VulkanDevice:
    """An adapter opened as a device. Its queue may be used from several threads.

    Args:
        adapter: what to open.
        folder: where compiled pipelines are kept; None for the user's cache directory.

    Raises:
        DeviceError: the driver refused.
    """

    def __init__(self, adapter: Adapter, folder: Path | None = None) -> None:
        vk = bindings()
        self.info = adapter.info
        self.adapter = adapter
        self.queue_family = adapter.queue_family
        self.has_timestamps = adapter.timestamp_bits > 0
        self.lost = False
        self._lock = threading.Lock()
        self._preparing = threading.Lock()
        self._abandoned: deque[VulkanExecutable | VulkanStates] = deque()
        self._null = vk.ffi.NULL
        self.handle = self._create()
        self.vk = Functions(lambda n: adapter.functions.vkGetDeviceProcAddr(self.handle, n))
        self.capabilities = _capabilities(adapter)
        self.memory_types = MemoryTypes(
            adapter.functions, adapter.physical, unified=adapter.unified
        )
        self._memories: dict[Use, Memory] = {use: Memory(self, use) for use in get_args(Use)}
        queue = vk.ffi.new("VkQueue*")
        self.vk.vkGetDeviceQueue(self.handle, self.queue_family, 0, queue)
        self._queue = queue[0]
        self._timeline = self._new_timeline()
        self._submission = _Submission(self._timeline)
        self._submitted = self._completed = 0
        self._value = vk.ffi.new("uint64_t*")
        store = PipelineStore(folder or cache_folder(), adapter.identity, adapter.info.driver)
        self.pipelines = Pipelines(self, store)
        self.transfer = Transfer(self)
        # At exit only what is on disk matters; the driver frees the rest with the process.
        atexit.register(self._save_quietly)

    @property
    def matrix_shapes(self) -> tuple[MatrixShape, ...]:
        """The products that the matrix units compute; none without them."""
        return self.adapter.matrix_shapes

    def memory(self, use: Use) -> Memory:
        """The memory of one use."""
        return self._memories[use]

    @property
    def held(self) -> int:
        """Bytes taken from the driver, for every use."""
        return sum(memory.held for memory in self._memories.values())

    def new_states(self) -> VulkanStates:
        """An empty set of states."""
        return VulkanStates(self)

    def prepare(self, plan: Plan, states: States | None = None) -> VulkanExecutable:
        """Create memory, pipelines and descriptor sets for a plan.

        Raises:
            OutOfDeviceMemoryError: the buffers do not fit.
            DeviceError: the driver refused a shader or a buffer.
        """
        self.check_present()
        own = states if isinstance(states, VulkanStates) else self.new_states()
        with self._preparing:
            self._free_abandoned()
            try:
                executable = VulkanExecutable(self, plan, own)
            except OutOfDeviceMemoryError:
                gc.collect()
                if not self._free_abandoned():
                    raise
                executable = VulkanExecutable(self, plan, own)
            self.pipelines.save_now_and_then()
        return executable

    def bury(self, abandoned: VulkanExecutable | VulkanStates) -> None:
        """Free what nobody closed, when the next plan is prepared.

        The collector may call this at any moment, also while this thread holds a lock.
        """
        self._abandoned.append(abandoned)

    def submit(self, commands: Any) -> int:
        """Run a command buffer after all before it; the number to :meth:`wait` for.

        Raises:
            DeviceLostError: the device went away.
        """
        with self._lock:
            self.check_present()
            value = self._submitted + 1
            info = self._submission.of(commands, value)
            self._check(self.vk.vkQueueSubmit(self._queue, 1, info, self._null), "submitting")
            self._submitted = value
        return value

    def wait(self, value: int) -> None:
        """Return when the submission of that number, and all before it, are done.

        Raises:
            DeviceLostError: the device went away.
        """
        if value <= self._completed:
            return
        self.check_present()
        if self._is_done_soon(value):
            return
        wanted = bindings().ffi.new("uint64_t*", value)
        info = struct(
            "VkSemaphoreWaitInfo", semaphoreCount=1, pSemaphores=self._timeline, pValues=wanted
        )
        while True:
            result = self.vk.vkWaitSemaphores(self.handle, info, _WAIT_NANOSECONDS)
            if result != _TIMEOUT:
                break
        self._check(result, "waiting")
        self._completed = max(self._completed, value)

    def finish(self) -> None:
        """Return when everything submitted is done."""
        self.wait(self._submitted)

    def finish_quietly(self) -> None:
        """As :meth:`finish`, also where the device is lost: nothing may be freed in use.

        A driver that tells of a loss may still be at work; one that is truly gone says so at once.
        """
        try:
            self.finish()
        except DeviceLostError:
            self.vk.vkDeviceWaitIdle(self.handle)

    def is_done(self, value: int) -> bool:
        """Whether the submission of that number is done, without waiting."""
        if value > self._completed:
            result = self.vk.vkGetSemaphoreCounterValue(self.handle, self._timeline[0], self._value)
            counted = int(self._value[0])
            self._check(_DEVICE_LOST if counted == _LOST_COUNTER else result, "asking for progress")
            self._completed = max(self._completed, counted)
        return value <= self._completed

    def check_present(self) -> None:
        """Raise DeviceLostError if the device went away."""
        if self.lost:
            raise DeviceLostError(f"{self.info.name} was lost. Load the program again to go on")

    def answers(self) -> bool:
        """Whether the device still works; one that was lost never does again."""
        if not self.lost:
            with contextlib.suppress(DeviceLostError):
                result = self.vk.vkGetSemaphoreCounterValue(
                    self.handle, self._timeline[0], self._value
                )
                self._check(result, "asking for progress")
        return not self.lost

    def close(self) -> None:
        """Free everything; executables must be closed before."""
        atexit.unregister(self._save_quietly)
        if not self.lost:
            self.finish_quietly()
        self._free_abandoned()
        self.transfer.close()
        for memory in self._memories.values():
            memory.close()
        self.pipelines.close()
        self.vk.vkDestroySemaphore(self.handle, self._timeline[0], self._null)
        self.vk.vkDestroyDevice(self.handle, self._null)
        self.lost = True

    def _free_abandoned(self) -> bool:
        """Close what was buried; whether there was anything."""
        found = False
        while self._abandoned:
            self._abandoned.popleft().close()
            found = True
        return found

    def _is_done_soon(self, value: int) -> bool:
        until = time.perf_counter() + _SPIN_SECONDS
        while not self.is_done(value):
            if time.perf_counter() > until:
                return False
        return True

    def _save_quietly(self) -> None:
        with contextlib.suppress(NybbleError):
            self.pipelines.save()

    def _check(self, result: int, what: str) -> None:
        try:
            check(result, f"{self.info.name}: {what}")
        except DeviceLostError:
            self.lost = True
            raise

    def _create(self) -> Any:
        ffi, adapter = bindings().ffi, self.adapter
        queue = struct(
            "VkDeviceQueueCreateInfo", queueFamilyIndex=self.queue_family, queueCount=1,
            pQueuePriorities=ffi.new("float[]", [1.0]),
        )  # fmt: skip
        names = [ffi.new("char[]", name.encode()) for name in adapter.features.extensions]
        create = struct(
            "VkDeviceCreateInfo", pNext=enabling_chain(adapter.features), queueCreateInfoCount=1,
            pQueueCreateInfos=queue, enabledExtensionCount=len(names),
            ppEnabledExtensionNames=ffi.new("char*[]", names),
        )  # fmt: skip
        handle = ffi.new("VkDevice*")
        check(
            adapter.functions.vkCreateDevice(adapter.physical, create, ffi.NULL, handle),
            f"{self.info.name}: opening {self.info.adapter}",
        )
        return handle[0]

    def _new_timeline(self) -> Any:
        ffi = bindings().ffi
        kind = struct("VkSemaphoreTypeCreateInfo", semaphoreType=1)
        create = struct("VkSemaphoreCreateInfo", pNext=kind)
        result = ffi.new("VkSemaphore*")
        self._check(
            self.vk.vkCreateSemaphore(self.handle, create, ffi.NULL, result),
            "creating a semaphore",
        )
        return result


class _Submission:
    """The structs of a submission, filled in anew each time."""

    def __init__(self, timeline: Any) -> None:
        ffi = bindings().ffi
        self._value = ffi.new("uint64_t*")
        self._commands = ffi.new("VkCommandBuffer*")
        values = struct(
            "VkTimelineSemaphoreSubmitInfo", signalSemaphoreValueCount=1,
            pSignalSemaphoreValues=self._value,
        )  # fmt: skip
        self._info = struct(
            "VkSubmitInfo", pNext=values, commandBufferCount=1, pCommandBuffers=self._commands,
            signalSemaphoreCount=1, pSignalSemaphores=timeline,
        )  # fmt: skip

    def of(self, commands: Any, value: int) -> Any:
        """The submission of a command buffer that leaves ``value`` on the timeline."""
        self._commands[0], self._value[0] = commands, value
        return self._info


def _capabilities(adapter: Adapter) -> Capabilities:
    limits = adapter.info.limits
    largest = min(limits["maxBufferSize"], limits["maxMemoryAllocationSize"])
    return Capabilities(
        kernels=True,
        software=adapter.software,
        packed_dot="shaderIntegerDotProduct" in adapter.features.names,
        max_buffer=largest & ~255,
        max_binding=min(limits["maxStorageBufferRange"], largest, ADDRESSABLE) & ~255,
        max_bindings=min(
            limits["maxPerStageDescriptorStorageBuffers"], limits["maxDescriptorSetStorageBuffers"]
        ),
        max_groups=limits["maxComputeWorkGroupCount"],
        max_threads=min(
            limits["maxComputeWorkGroupInvocations"], limits["maxComputeWorkGroupSize"]
        ),
        max_workgroup_bytes=limits["maxComputeSharedMemorySize"],
        matrix_units=tuple(map(str, adapter.matrix_shapes)),
        subgroups=adapter.subgroups.shuffles,
        precision="float32" if os.environ.get("NYBBLE_PRECISION") == "float32" else "float16",
    )
