"""What goes wrong on a device is one typed error, in words, and never ends the process."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wgpu

import nybble
from nybble.devices import Device, open_device
from nybble.devices.webgpu.errors import device_errors
from nybble.plan import Dispatch, make_plan

pytestmark = pytest.mark.device
FIXTURES = Path(__file__).parents[1] / "fixtures"


def conv(device: str) -> tuple[nybble.Program, Any, Any]:
    """A program, its input and the answer."""
    stored = np.load(FIXTURES / "conv_odd.npz")
    program = nybble.load(FIXTURES / "conv_odd.pte", device=device)
    return program, stored["input_0"], stored["output_0"]


@pytest.mark.parametrize("runs", [0, 1, 3])
def test_lost_device_is_an_error_and_loading_again_helps(adapter: str, runs: int) -> None:
    """A device lost before, between or in replays raises, each time; a fresh load then works."""
    program, x, expected = conv(adapter)
    other, _, _ = conv(adapter)
    for _ in range(runs):
        np.testing.assert_array_equal(expected, program(x))
    method: Any = program["forward"]
    method.device.handle.destroy()
    for _ in range(2):
        for failing in (program, other, program.verify, program.profile):
            with pytest.raises(nybble.DeviceLostError, match="Load the program again to go on"):
                failing(x)
    program.close()
    other.close()
    again, _, _ = conv(adapter)
    np.testing.assert_array_equal(expected, again(x))
    again.close()


def test_lost_device_ends_no_process(adapter: str) -> None:
    """After a loss Python goes on, and ends with the status that it should."""
    code = f"""
    import numpy as np, nybble
    program = nybble.load({str(FIXTURES / "conv_odd.pte")!r}, device={adapter!r})
    x = np.load({str(FIXTURES / "conv_odd.npz")!r})["input_0"]
    program(x), program(x)
    program["forward"].device.handle.destroy()
    try:
        program(x)
    except nybble.DeviceLostError:
        print("lost")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert (0, "lost\n") == (done.returncode, done.stdout), done.stderr


def test_refused_shader_names_the_call(device: Device, sketch: Any) -> None:
    """A shader that the driver's compiler refuses is reported with the operator and what to do."""
    plan = make_plan(
        sketch.graph(sketch.call("aten.neg.default", x=sketch.input("float32", 64))),
        device.capabilities,
    )
    (step,) = plan.steps
    assert isinstance(step, Dispatch)
    broken = replace(plan, steps=(replace(step, shader=step.shader + "fn broken( {"),))
    with pytest.raises(nybble.DeviceError) as caught:
        device.prepare(broken)
    assert f"{device.info.name} refused the shader of aten.neg.default" in str(caught.value)
    assert "please report it with `nybble doctor`'s output" in str(caught.value)
    assert type(caught.value) is nybble.DeviceError
    device.prepare(plan).close()


def test_invalid_dispatch_is_an_error_in_the_first_run(adapter: str, sketch: Any) -> None:
    """The first run goes through the validating API: a grid that no device takes is caught."""
    device = open_device(adapter)
    plan = make_plan(
        sketch.graph(sketch.call("aten.neg.default", x=sketch.input("float32", 64))),
        device.capabilities,
    )
    (step,) = plan.steps
    assert isinstance(step, Dispatch)
    executable = device.prepare(replace(plan, steps=(replace(step, grid=(1 << 20, 1, 1)),)))
    for _ in range(2):
        with pytest.raises(nybble.DeviceError):
            executable.run([np.zeros(64, np.float32)])
    executable.close()


def test_buffer_beyond_the_limit_is_never_asked_for(
    adapter: str, sketch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan whose buffer the device cannot hold is refused before anything is allocated."""
    device: Any = open_device(adapter)
    plan = make_plan(
        sketch.graph(sketch.call("aten.neg.default", x=sketch.input("float32", 64))),
        device.capabilities,
    )
    huge = replace(plan, buffers=(*plan.buffers[:-1], device.capabilities.max_buffer + 16))
    asked: list[int] = []
    create = device.handle.create_buffer

    def recorded(**options: Any) -> Any:
        asked.append(options["size"])
        return create(**options)

    monkeypatch.setattr(device.handle, "create_buffer", recorded)
    with pytest.raises(nybble.OutOfDeviceMemoryError) as caught:
        device.prepare(huge)
    assert device.capabilities.max_buffer + 16 not in asked
    assert f"a buffer of {device.capabilities.max_buffer + 16:,} bytes is needed" in str(
        caught.value
    )
    assert "Use a smaller batch or device='host'" in str(caught.value)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        # What an H200 of which 139 GiB were asked said through wgpu-native and through Dawn.
        (
            wgpu.GPUValidationError(
                "Validation Error\n\nCaused by:\n  In wgpuDeviceCreateBuffer\n"
                "    Not enough memory left.\n"
            ),
            "Not enough memory left",
        ),
        (
            MemoryError(
                "vkAllocateMemory failed with VK_ERROR_OUT_OF_DEVICE_MEMORY\n"
                " - While calling [Device].CreateBuffer([BufferDescriptor]).\n"
            ),
            "vkAllocateMemory failed with VK_ERROR_OUT_OF_DEVICE_MEMORY",
        ),
        (wgpu.GPUOutOfMemoryError("Out of memory"), "Out of memory"),
    ],
)
def test_no_memory_is_an_error_of_its_own(error: Exception, reason: str) -> None:
    """However wgpu says that a device's memory ran out, it is one sentence on what to do."""
    with pytest.raises(nybble.OutOfDeviceMemoryError) as caught, device_errors("webgpu:0"):
        raise error
    expected = (
        f"webgpu:0 is out of memory: {reason}. Use a smaller batch, close other programs, "
        "or use device='host'"
    )
    assert expected == str(caught.value)


def test_no_host_memory_is_not_the_devices() -> None:
    """numpy's lack of memory is said to be the host's."""
    said = "Unable to allocate 7.45 GiB for an array"
    with (
        pytest.raises(nybble.OutOfDeviceMemoryError, match="the host is out of memory: Unable"),
        device_errors("webgpu:0"),
    ):
        raise MemoryError(said)


def test_tensor_beyond_the_limit_is_refused_when_planned(device: Device, sketch: Any) -> None:
    """A value larger than any buffer is named before the device is asked."""
    elements = device.capabilities.max_buffer // 4 + 4
    x = sketch.input("float32", elements)
    with pytest.raises(nybble.OutOfDeviceMemoryError, match="takes .* bytes; a buffer of this"):
        make_plan(sketch.graph(sketch.call("aten.neg.default", x=x)), device.capabilities)


def test_error_of_our_own_is_not_disguised(device: Any, sketch: Any) -> None:
    """A mistake in nybble is no DeviceError: it keeps its type and trace."""
    plan = make_plan(
        sketch.graph(sketch.call("aten.neg.default", x=sketch.input("float32", 64))),
        device.capabilities,
    )
    executable = device.prepare(plan)
    with pytest.raises(ValueError, match="zip"):
        executable.run([])
    executable.close()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("webgpu:99", "device 'webgpu:99' was not found; WebGPU adapters here: webgpu:0: "),
        ("webgpu:x", "device 'webgpu:x' was not found"),
        ("cuda", "unknown device 'cuda'; devices here: "),
        ("", "unknown device ''; devices here: "),
    ],
)
def test_unknown_device_lists_those_that_exist(name: str, message: str) -> None:
    """A wrong name is answered with the right ones."""
    with pytest.raises(nybble.DeviceError) as caught:
        open_device(name)
    assert message in str(caught.value)
    assert "host" in str(caught.value)


def test_one_device_serves_several_programs(adapter: str) -> None:
    """Opening an adapter twice gives the same device, so pipelines are compiled once."""
    one, _, _ = conv(adapter)
    two, _, _ = conv(adapter)
    devices: list[Any] = [program["forward"].device for program in (one, two)]
    assert devices[0] is devices[1]
    one.close()
    two.close()
