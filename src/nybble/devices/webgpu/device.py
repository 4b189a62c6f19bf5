"""A WebGPU device: pipelines and bind group layouts, made once and kept."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from nybble.devices.base import States
from nybble.errors import DeviceError, OutOfDeviceMemoryError
from nybble.plan import Capabilities, Plan

from .adapters import Adapter
from .errors import device_errors
from .executable import WebGpuExecutable
from .states import WebGpuStates

__all__ = ["WebGpuDevice"]

_WANTED_FEATURES = ("timestamp-query", "subgroup", "subgroups")
"""Those of subgroups are one: wgpu-native and Dawn name it differently."""
_WANTED_LIMITS = (
    "max-buffer-size",
    "max-storage-buffer-binding-size",
    "max-storage-buffers-per-shader-stage",
)
_PACKED_DOT_PROBE = """
@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@compute @workgroup_size(1) fn main() { a[0] = u32(dot4I8Packed(a[0], a[1])); }
"""
_SUBGROUP_PROBE = """
@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@compute @workgroup_size(32) fn main(@builtin(subgroup_size) size: u32) {
  a[0] = subgroupShuffle(subgroupShuffleXor(size, 1u), 0u);
}
"""
ADDRESSABLE = 2**32 - 1
"""Bytes of one binding that 32-bit word indices reach comfortably, whatever the adapter offers."""


class WebGpuDevice:
    """An adapter opened as a device."""

    def __init__(self, adapter: Adapter) -> None:
        self.info = adapter.info
        self.module = adapter.module
        limits = adapter.info.limits
        features = [f for f in _WANTED_FEATURES if f in adapter.info.features]
        with device_errors(self.info.name):
            self.handle = adapter.handle.request_device_sync(
                required_features=features,
                required_limits={key: limits[key] for key in _WANTED_LIMITS if key in limits},
            )
        self.has_timestamps = "timestamp-query" in features
        granted = dict(self.handle.limits)
        self.capabilities = Capabilities(
            kernels=True,
            software=adapter.software,
            packed_dot=self._compiles(_PACKED_DOT_PROBE),
            max_buffer=int(granted["max-buffer-size"]),
            max_binding=min(int(granted["max-storage-buffer-binding-size"]), ADDRESSABLE) & ~255,
            max_bindings=int(granted["max-storage-buffers-per-shader-stage"]),
            max_groups=int(granted["max-compute-workgroups-per-dimension"]),
            max_threads=int(granted["max-compute-invocations-per-workgroup"]),
            max_workgroup_bytes=int(granted["max-compute-workgroup-storage-size"]),
            subgroups=self._compiles(_SUBGROUP_PROBE),
        )
        self._layouts: dict[tuple[int, int], tuple[Any, Any]] = {}
        self._pipelines: dict[str, Any] = {}

    def new_states(self) -> WebGpuStates:
        """An empty set of states."""
        return WebGpuStates(self)

    def prepare(self, plan: Plan, states: States | None = None) -> WebGpuExecutable:
        """Create buffers, pipelines and bind groups for a plan.

        Raises:
            OutOfDeviceMemoryError: the buffers do not fit.
            DeviceError: the driver refused a shader or a buffer.
        """
        with self.errors():
            own = states if isinstance(states, WebGpuStates) else self.new_states()
            return WebGpuExecutable(self, plan, own)

    def layout(self, reads: int, writes: int) -> tuple[Any, Any]:
        """The bind group layout and pipeline layout for that many storage bindings."""
        key = (reads, writes)
        if key not in self._layouts:
            kinds = ["read-only-storage"] * reads + ["storage"] * writes + ["uniform"]
            group = self.handle.create_bind_group_layout(
                entries=[
                    {
                        "binding": i,
                        "visibility": self.module.ShaderStage.COMPUTE,
                        "buffer": {"type": kind},
                    }
                    for i, kind in enumerate(kinds)
                ]
            )
            whole = self.handle.create_pipeline_layout(bind_group_layouts=[group])
            self._layouts[key] = (group, whole)
        return self._layouts[key]

    def pipeline(self, shader: str, label: str, reads: int, writes: int) -> Any:
        """The compute pipeline of a shader, compiled once a device."""
        if shader not in self._pipelines:
            try:
                module = self.handle.create_shader_module(code=self._enabled(shader), label=label)
                self._pipelines[shader] = self.handle.create_compute_pipeline(
                    layout=self.layout(reads, writes)[1],
                    compute={"module": module, "entry_point": "main"},
                )
            except self.module.GPUError as error:
                raise DeviceError(
                    f"{self.info.name} refused the shader of {label}: {error}. This is a defect "
                    "of nybble or of the driver; please report it with `nybble doctor`'s output"
                ) from None
        return self._pipelines[shader]

    def buffer(self, size: int, usage: int) -> Any:
        """A new zero-filled buffer.

        Raises:
            OutOfDeviceMemoryError: the device cannot hold it.
        """
        if size > self.capabilities.max_buffer:
            raise OutOfDeviceMemoryError(
                f"a buffer of {size:,} bytes is needed; {self.info.name} allows "
                f"{self.capabilities.max_buffer:,}. Use a smaller batch or device='host'"
            )
        return self.handle.create_buffer(size=size, usage=usage)

    def errors(self) -> AbstractContextManager[None]:
        """Within it, what wgpu raises is raised as nybble's errors."""
        return device_errors(self.info.name, self.answers)

    def answers(self) -> bool:
        """Whether the device still works; one that was lost never does again."""
        try:
            self.handle.create_buffer(size=16, usage=self.module.BufferUsage.COPY_DST).destroy()
        except self.module.GPUError:
            return False
        return True

    def _enabled(self, shader: str) -> str:
        """The shader after the line that WGSL wants before the use of subgroups.

        wgpu-native takes no such line yet and knows subgroups without it.
        """
        if "subgroup" in shader and self.module.__name__ != "wgpu":
            return f"enable subgroups;\n{shader}"
        return shader

    def _compiles(self, code: str) -> bool:
        try:
            self.handle.create_shader_module(code=self._enabled(code))
        except self.module.GPUError:
            return False
        return True
