"""Plain WGSL beside nybble's kernels: what one writes first, and a copy for the floor.

It runs on WebGPU devices only; on others there is nothing to show and None is returned. Timed in a
row as nybble's kernels are, each dispatch waiting for the one before, whose result it overwrites.
"""

from __future__ import annotations

import numpy as np

from bench.common import Row, Sample, row_times
from nybble.contract import Array
from nybble.devices import Device
from nybble.devices.webgpu import WebGpuDevice
from nybble.devices.webgpu.encode import PreparedDispatch
from nybble.devices.webgpu.timing import DispatchTimer

__all__ = ["copy_rate", "plain_pointwise", "plain_quantize"]

_QUANTIZE = """
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<uniform> size: vec4<u32>;
@compute @workgroup_size(256) fn main(@builtin(workgroup_id) g: vec3<u32>,
                                      @builtin(local_invocation_index) t: u32) {
  let i = (g.x + g.y * size.y) * 256u + t;
  if (i < size.x) { y[i] = pack4xI8Clamp(vec4<i32>(round(x[i] * 20.0)) + vec4<i32>(3)); }
}
"""
_COPY = """
@group(0) @binding(0) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<u32>>;
@group(0) @binding(2) var<uniform> size: vec4<u32>;
@compute @workgroup_size(256) fn main(@builtin(workgroup_id) g: vec3<u32>,
                                      @builtin(local_invocation_index) t: u32) {
  let i = (g.x + g.y * size.y) * 256u + t;
  if (i < size.x) { y[i] = x[i]; }
}
"""
_POINTWISE = """
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> w: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
@group(0) @binding(3) var<uniform> size: vec4<u32>;
@compute @workgroup_size(64) fn main(@builtin(workgroup_id) g: vec3<u32>,
                                     @builtin(local_invocation_index) t: u32) {
  let i = (g.x + g.y * size.y) * 64u + t;
  if (i < size.x) {
    let row = i / size.w; let quad = i % size.w;
    var sums = vec4<i32>();
    for (var k = 0u; k < size.z; k++) {
      let a = x[row * size.z + k];
      for (var j = 0u; j < 4u; j++) {
        sums[j] += dot4I8Packed(a, w[(quad * 4u + j) * size.z + k]);
      }
    }
    y[i] = pack4xI8Clamp(vec4<i32>(round(vec4<f32>(sums) * 1e-4)));
  }
}
"""


def copy_rate(device: Device, nbytes: int) -> Row | None:
    """A copy kernel's bytes a second, read and written counted: the floor of streaming work."""
    if not isinstance(device, WebGpuDevice):
        return None
    count = nbytes // 16
    sample = _time(device, _COPY, [np.zeros(4, np.uint32)], nbytes, count, 256, source=nbytes)
    return Row("copy", "copy", 2 * nbytes / sample.median / 1e9, "GB/s", sample)


def plain_quantize(device: Device, values: Array) -> Sample | None:
    """The time of a kernel with one word a thread."""
    if not isinstance(device, WebGpuDevice):
        return None
    return _time(device, _QUANTIZE, [values], values.size, -(-values.size // 4), 256)


def plain_pointwise(device: Device, m: int, n: int, k: int) -> Sample | None:
    """The time of a kernel with four outputs a thread and nothing shared."""
    if not isinstance(device, WebGpuDevice):
        return None
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-128, 128, s, dtype=np.int8) for s in ((m, k), (n, k)))
    return _time(device, _POINTWISE, [x, w], m * n, m * n // 4, 64, (k // 4, n // 4))


def _time(
    device: WebGpuDevice,
    shader: str,
    inputs: list[Array],
    out_bytes: int,
    threads: int,
    group: int,
    sizes: tuple[int, int] = (0, 0),
    *,
    source: int | None = None,
) -> Sample:
    handle, usage = device.handle, device.module.BufferUsage
    buffers = []
    for data in inputs:
        size = -(-(source or data.nbytes) // 16) * 16
        buffers.append(handle.create_buffer(size=size, usage=usage.STORAGE | usage.COPY_DST))
        handle.queue.write_buffer(buffers[-1], 0, data)
    out = handle.create_buffer(size=-(-out_bytes // 16) * 16, usage=usage.STORAGE)
    groups = -(-threads // group)
    rows = -(-groups // device.capabilities.max_groups)
    width = -(-groups // rows)
    params = handle.create_buffer(size=16, usage=usage.UNIFORM | usage.COPY_DST)
    handle.queue.write_buffer(params, 0, np.array([threads, width, *sizes], np.uint32))
    bound = [*buffers, out, params]
    pipeline = device.pipeline(shader, "plain", len(buffers), 1)
    bind_group = handle.create_bind_group(
        layout=device.layout(len(buffers), 1)[0],
        entries=[
            {"binding": i, "resource": {"buffer": b, "offset": 0, "size": b.size}}
            for i, b in enumerate(bound)
        ],
    )
    dispatch = PreparedDispatch(pipeline, bind_group, (width, rows, 1))
    timer = DispatchTimer(device)
    sample = row_times(lambda repeats, rows: timer.in_a_row([dispatch], repeats, rows), 15)
    for buffer in bound:
        buffer.destroy()
    return sample
