"""Asks WebGPU and Vulkan what they find, in a process of its own: a broken driver may abort it.

``python -m nybble.doctor.probe`` prints one JSON object a line: every adapter first, then the
outcome of one small kernel on each. Exit status 0 says that an adapter was found, 3 that there is
none (Python itself uses 1 and 2), so that a shell script can ask the same question.
"""

from __future__ import annotations

import importlib
import json
import struct
import sys
import warnings
from dataclasses import asdict
from typing import Any

import numpy as np

from nybble.devices import open_device, vulkan
from nybble.devices.webgpu import PROVIDERS, Adapter, adapters
from nybble.doctor.facts import NO_ADAPTER_STATUS

__all__ = ["main"]

_PACKED_DOT = """
@group(0) @binding(0) var<storage, read_write> words: array<u32>;
@compute @workgroup_size(1) fn main() {
    words[0] = bitcast<u32>(dot4I8Packed(words[0], words[1]));
}
"""
# Lanes 1, -2, 3, -128 by 127, -1, 2, -128: negative lanes tell a signed dot from an unsigned one.
_LEFT, _RIGHT, _EXPECTED = 0x8003FE01, 0x8002FF7F, 127 + 2 + 6 + 16384


def main() -> int:
    """Print what is found; return the exit status."""
    found = [adapter for provider in PROVIDERS for adapter in adapters(provider)]
    for adapter in found:
        _print({**asdict(adapter.info), "limits": dict(adapter.info.limits)})
    for adapter in found:
        _print({"name": adapter.info.name, "packed_dot": _try_packed_dot(adapter)})
    if not found:
        _print({"error": _why_none()})
    _probe_vulkan()
    _probe_automatic()
    return 0 if found else NO_ADAPTER_STATUS


def _probe_automatic() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        name = open_device("auto").info.name
    if name != "host":
        _print({"name": name, "automatic": True})


def _probe_vulkan() -> None:
    for reason in vulkan.why_unusable():
        _print({"vulkan_problem": reason})
    for adapter in vulkan.adapters():
        record = {
            **asdict(adapter.info), "limits": dict(adapter.info.limits),
            "subgroup_size": adapter.subgroups.usual, "timestamp_bits": adapter.timestamp_bits,
            "unified": adapter.unified,
        }  # fmt: skip
        _print({**record, "trial": "the trial kernel ended the process"})
        _print({"name": adapter.info.name, "trial": _try_vulkan(adapter)})


def _try_vulkan(adapter: vulkan.Adapter) -> str:
    """Return "" when a kernel ran on the adapter and its result is right, else a sentence."""
    from nybble.testing import run_call

    x = np.arange(-8, 8, dtype=np.float32)
    try:
        (result,) = run_call(vulkan.VulkanDevice(adapter), "aten.neg.default", {"x": x})
    except Exception as error:  # noqa: BLE001  whatever the driver says is the finding
        return _sentence(error)
    return "" if np.array_equal(result, -x) else f"the trial kernel gave {result} for {-x}"


def _print(record: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()


def _why_none() -> str:
    """Say what wgpu itself gives where nybble finds nothing that it can use."""
    try:
        handles = importlib.import_module(PROVIDERS["webgpu"]).gpu.enumerate_adapters_sync()
    except Exception as error:  # noqa: BLE001  no loader, no library: each platform has its own
        return _sentence(error)
    others = [f"{handle.info['device']} ({handle.info['backend_type']})" for handle in handles]
    if others:
        return f"only {', '.join(others)}, and nybble does not use that backend"
    return "no adapter; programs run on the host reference, slowly"


def _try_packed_dot(adapter: Adapter) -> str:
    """Return "" when the kernel ran and its result is right, else a sentence."""
    try:
        result = _run_packed_dot(adapter)
    except Exception as error:  # noqa: BLE001  whatever the driver says is the finding
        return _sentence(error)
    return "" if result == _EXPECTED else f"dot4I8Packed gave {result} instead of {_EXPECTED}"


def _run_packed_dot(adapter: Adapter) -> int:
    usage = adapter.module.BufferUsage
    device = adapter.handle.request_device_sync()
    buffer = device.create_buffer_with_data(
        data=struct.pack("<2I", _LEFT, _RIGHT), usage=usage.STORAGE | usage.COPY_SRC
    )
    pipeline = device.create_compute_pipeline(
        layout="auto",
        compute={"module": device.create_shader_module(code=_PACKED_DOT), "entry_point": "main"},
    )
    group = device.create_bind_group(
        layout=pipeline.get_bind_group_layout(0),
        entries=[{"binding": 0, "resource": {"buffer": buffer, "offset": 0, "size": 8}}],
    )
    encoder = device.create_command_encoder()
    run = encoder.begin_compute_pass()
    run.set_pipeline(pipeline)
    run.set_bind_group(0, group)
    run.dispatch_workgroups(1)
    run.end()
    device.queue.submit([encoder.finish()])
    return int(struct.unpack("<i", device.queue.read_buffer(buffer, 0, 4))[0])


def _sentence(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


if __name__ == "__main__":
    sys.exit(main())
