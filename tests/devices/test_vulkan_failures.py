"""What goes wrong with Vulkan is one typed error, in words, and never ends the process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nybble
from nybble.devices import open_device
from nybble.devices.vulkan import VulkanDevice, adapters, find_adapter, why_unusable
from nybble.devices.vulkan.api import bindings
from nybble.plan import Dispatch, Plan, make_plan

pytestmark = pytest.mark.device
FIXTURES = Path(__file__).parents[1] / "fixtures"
DEVICE_LOST, OUT_OF_DEVICE_MEMORY, OUT_OF_HOST_MEMORY, UNKNOWN = -4, -2, -1, -13
NO_DRIVER = -9


@pytest.fixture
def device(tmp_path: Path) -> Iterator[VulkanDevice]:
    """The best adapter, opened for one test."""
    opened = VulkanDevice(find_adapter("vulkan"), tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def searched_anew() -> Iterator[None]:
    """Adapters are looked for again in the test, and again after it."""
    search: Any = sys.modules["nybble.devices.vulkan.adapters"]
    search._found.cache_clear()
    yield
    search._found.cache_clear()


def negation(device: VulkanDevice, sketch: Any) -> Plan:
    """A plan of one dispatch."""
    x = sketch.input("float32", 64)
    return make_plan(sketch.graph(sketch.call("aten.neg.default", x=x)), device.capabilities)


def conv() -> tuple[nybble.Program, Any, Any]:
    """A program on the shared device, its input and the answer."""
    stored = np.load(FIXTURES / "conv_odd.npz")
    program = nybble.load(FIXTURES / "conv_odd.pte", device="vulkan")
    return program, stored["input_0"], stored["output_0"]


def fails(result: int) -> Callable[..., int]:
    """A Vulkan function that does nothing and gives ``result``."""
    return lambda *_: result


class NoInstance:
    """A loader that makes no instance."""

    def __init__(self, result: int) -> None:
        self.vkCreateInstance = fails(result)
        self.vkEnumerateInstanceExtensionProperties = fails(0)

    def vkEnumerateInstanceVersion(self, version: Any) -> int:  # noqa: N802  Vulkan's name
        """Vulkan 1.3."""
        version[0] = 1 << 22 | 3 << 12
        return 0


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python with more in its environment."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip


ASK = """
    import nybble
    print([i.name for i in nybble.devices() if i.name.startswith("vulkan")])
    try:
        nybble.load(b"", device="vulkan")
    except nybble.ProgramFormatError:
        from nybble.devices import open_device
        try:
            open_device("vulkan")
        except nybble.DeviceError as error:
            print(error)
"""
HELP = (
    " Run `nybble doctor` to see what is missing and how to get it, or use device='webgpu' or "
    "device='host'\n"
)
NOT_FOUND = "[]\ndevice 'vulkan' was not found; Vulkan adapters here: none. Not usable: "


def test_no_driver_is_said() -> None:
    """A loader without any driver is told from no loader, with the variable that hides them."""
    done = run(ASK, VK_DRIVER_FILES=os.devnull, VK_ICD_FILENAMES=os.devnull)
    reasons = ("no Vulkan driver is found", "the Vulkan loader finds no device")
    remedy = f"; correct or unset VK_DRIVER_FILES={os.devnull}."
    assert done.stdout in {NOT_FOUND + reason + remedy + HELP for reason in reasons}, done.stderr


@pytest.mark.parametrize("content", ["{", '{"ICD": {"library_path": "/none/of/these.so"}}'])
def test_unusable_driver_file_is_said(content: str, tmp_path: Path) -> None:
    """A driver's file that is damaged, or whose library is gone, is named with what to do."""
    file = tmp_path / "driver.json"
    file.write_text(content)
    done = run(ASK, VK_DRIVER_FILES=str(file), VK_ICD_FILENAMES=str(file))
    assert done.stdout.startswith(NOT_FOUND), done.stderr
    assert f"; correct or unset VK_DRIVER_FILES={file}." in done.stdout
    assert "Use a smaller batch" not in done.stdout


@pytest.mark.usefixtures("searched_anew")
@pytest.mark.parametrize("result", [NO_DRIVER, OUT_OF_HOST_MEMORY])
def test_driver_that_nobody_named_is_to_be_installed(
    result: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a variable that names drivers the remedy is to install one."""
    for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        monkeypatch.delenv(name, raising=False)
    search: Any = sys.modules["nybble.devices.vulkan.adapters"]
    monkeypatch.setattr(search, "Functions", lambda _: NoInstance(result))
    search.instance.cache_clear()
    (reason,) = why_unusable()
    monkeypatch.undo()
    search.instance.cache_clear()
    expected = {
        NO_DRIVER: "no Vulkan driver is found; install the one of your GPU",
        OUT_OF_HOST_MEMORY: "the Vulkan loader gave up (creating the Vulkan instance: out of host "
        "memory), as it does where the file that describes a driver is damaged; install the "
        "driver again",
    }
    assert expected[result] == reason


def test_no_package_is_said() -> None:
    """Without the binding WebGPU and the host still work, and the error says what to install."""
    done = run("import sys; sys.modules['vulkan'] = None\n" + textwrap.dedent(ASK))
    reason = "the Python package 'vulkan' is not installed: pip install vulkan."
    assert done.stdout == NOT_FOUND + reason + HELP, done.stderr


def test_no_loader_is_said() -> None:
    """The binding raises OSError where libvulkan is absent; the error says how to get it."""
    hidden = """
    import sys
    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name == "vulkan":
                raise OSError("Cannot find Vulkan SDK version")
    sys.meta_path.insert(0, Finder())
    """
    done = run(textwrap.dedent(hidden) + textwrap.dedent(ASK))
    assert done.stdout.startswith(NOT_FOUND + "the Vulkan loader was not found; install it (")
    assert "apt-get install libvulkan1" in done.stdout


@pytest.mark.usefixtures("searched_anew")
@pytest.mark.parametrize(
    ("where", "value", "reason"),
    [
        ("features._REQUIRED", ("timelineSemaphore", "teleportation"),
         "its driver lacks the feature teleportation"),
        ("adapters._LOWEST", (1, 9), ", 1.9 is needed"),
    ],
)  # fmt: skip
def test_what_a_driver_lacks_is_named(
    where: str, value: Any, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An adapter without what is needed is not listed, and the error says what that is."""
    module, name = where.split(".")
    names = [adapter.info.adapter for adapter in adapters()]
    monkeypatch.setattr(sys.modules[f"nybble.devices.vulkan.{module}"], name, value)
    search: Any = sys.modules["nybble.devices.vulkan.adapters"]
    search._found.cache_clear()
    assert () == adapters()
    assert all(name in said for name, said in zip(names, why_unusable(), strict=True))
    with pytest.raises(nybble.DeviceError) as caught:
        find_adapter("vulkan")
    assert reason in str(caught.value)


def test_unknown_adapter_lists_those_that_exist() -> None:
    """A wrong number is answered with the right ones."""
    with pytest.raises(nybble.DeviceError, match="'vulkan:99' was not found; .* here: vulkan:0: "):
        open_device("vulkan:99")


@pytest.mark.parametrize("result", [OUT_OF_DEVICE_MEMORY, OUT_OF_HOST_MEMORY])
def test_full_memory_is_an_error_and_frees_what_it_took(
    device: VulkanDevice, sketch: Any, monkeypatch: pytest.MonkeyPatch, result: int
) -> None:
    """A plan that does not fit raises, leaves nothing behind, and the device goes on."""
    plan = negation(device, sketch)
    device.prepare(plan).close()
    free = [list(block.free) for block in device.memory("device")._blocks]
    huge = replace(plan, buffers=(*plan.buffers, 100 << 20))
    monkeypatch.setattr(device.vk, "vkAllocateMemory", fails(result), raising=False)
    with pytest.raises(nybble.OutOfDeviceMemoryError) as caught:
        device.prepare(huge)
    monkeypatch.undo()
    assert f"{device.info.name}: {100 << 20:,} bytes of device memory" in str(caught.value)
    assert "Use a smaller batch, close other programs, or use device='host'" in str(caught.value)
    assert free == [list(block.free) for block in device.memory("device")._blocks]
    again = device.prepare(plan)
    np.testing.assert_array_equal(-np.ones(64), again.run([np.ones(64, np.float32)])[0])
    again.close()


@pytest.mark.parametrize("address", [0, -1])
def test_memory_that_is_mapped_nowhere_is_full_memory(
    device: VulkanDevice, sketch: Any, monkeypatch: pytest.MonkeyPatch, address: int
) -> None:
    """Mesa's software driver calls a failed mapping a success: nothing is written there."""
    ffi = bindings().ffi

    def nowhere(*arguments: Any) -> int:
        arguments[-1][0] = ffi.cast("void*", address)
        return 0

    plan = negation(device, sketch)
    monkeypatch.setattr(device.vk, "vkMapMemory", nowhere, raising=False)
    with pytest.raises(nybble.OutOfDeviceMemoryError, match="memory: out of host memory. Use a "):
        device.prepare(plan).run([np.ones(64, np.float32)])
    monkeypatch.undo()
    executable = device.prepare(plan)
    np.testing.assert_array_equal(-np.ones(64), executable.run([np.ones(64, np.float32)])[0])
    executable.close()


def test_software_adapters_give_no_more_than_their_heap(
    device: VulkanDevice, sketch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is beyond all memory is refused before it is touched: the system would end us."""
    monkeypatch.setattr(device, "capabilities", replace(device.capabilities, software=True))
    plan = negation(device, sketch)
    device.prepare(plan).close()
    heap = device.held + (120 << 20)
    monkeypatch.setattr(device.memory_types, "heap", lambda kind: heap)
    huge = replace(plan, buffers=(*plan.buffers, 100 << 20, 64 << 20))
    with pytest.raises(nybble.OutOfDeviceMemoryError, match="memory: out of host memory. Use a "):
        device.prepare(huge)
    device.prepare(replace(plan, buffers=(*plan.buffers, 1 << 20))).close()


def test_small_plan_fits_where_a_block_does_not(
    device: VulkanDevice, sketch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the driver refuses a large block, just what is needed is asked for."""
    allocate = device.vk.vkAllocateMemory

    def little(handle: Any, info: Any, *rest: Any) -> int:
        if info.allocationSize > 1 << 20:
            return OUT_OF_DEVICE_MEMORY
        result: int = allocate(handle, info, *rest)
        return result

    monkeypatch.setattr(device.vk, "vkAllocateMemory", little)
    executable = device.prepare(negation(device, sketch))
    np.testing.assert_array_equal(-np.ones(64), executable.run([np.ones(64, np.float32)])[0])
    executable.close()


def test_buffer_beyond_the_limit_is_never_asked_for(device: VulkanDevice, sketch: Any) -> None:
    """A buffer larger than the device allows is refused with both sizes."""
    plan = negation(device, sketch)
    size = device.capabilities.max_buffer + 256
    with pytest.raises(nybble.OutOfDeviceMemoryError, match=f"a buffer of {size:,} bytes is need"):
        device.prepare(replace(plan, buffers=(*plan.buffers, size)))


@pytest.mark.parametrize(
    "function", ["vkQueueSubmit", "vkWaitSemaphores", "vkGetSemaphoreCounterValue"]
)
def test_lost_device_is_an_error_and_loading_again_helps(
    function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loss raises, each time and for every program on the device; a fresh load works."""
    program, x, expected = conv()
    other, _, _ = conv()
    np.testing.assert_array_equal(expected, program(x))
    method: Any = program["forward"]
    # A run this short is over while the wait still asks, which then never sleeps.
    if function == "vkWaitSemaphores":
        monkeypatch.setattr(method.device, "_is_done_soon", lambda value: False)
    monkeypatch.setattr(method.device.vk, function, fails(DEVICE_LOST))
    for _ in range(2):
        for failing in (program, other, program.verify, program.profile):
            with pytest.raises(nybble.DeviceLostError, match="Load the program again to go on"):
                failing(x)
    monkeypatch.undo()
    with pytest.raises(nybble.DeviceLostError, match=r"vulkan:0 was lost"):
        program(x)
    program.close()
    other.close()
    again, _, _ = conv()
    fresh: Any = again["forward"]
    assert method.device is not fresh.device
    np.testing.assert_array_equal(expected, again(x))
    again.close()


def test_loss_in_an_idle_device_is_noticed_when_it_is_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A loss that nobody has met yet is found by asking the driver, not by the next run."""
    lost: Any = open_device("vulkan")
    monkeypatch.setattr(lost.vk, "vkGetSemaphoreCounterValue", fails(DEVICE_LOST), raising=False)
    assert open_device("vulkan") is not lost


def test_refused_pipeline_names_the_call(
    device: VulkanDevice, sketch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver that cannot compile is reported with the operator and what to do."""
    plan = negation(device, sketch)
    monkeypatch.setattr(device.vk, "vkCreateComputePipelines", fails(UNKNOWN), raising=False)
    with pytest.raises(nybble.DeviceError) as caught:
        device.prepare(plan)
    assert f"{device.info.name} refused the shader of aten.neg.default" in str(caught.value)
    assert "VkResult -13" in str(caught.value)
    assert "please report it with `nybble doctor`'s output" in str(caught.value)


def test_grid_beyond_the_limit_is_refused(device: VulkanDevice, sketch: Any) -> None:
    """Vulkan itself does not check a grid: a plan for another device is caught beforehand."""
    plan = negation(device, sketch)
    (step,) = plan.steps
    assert isinstance(step, Dispatch)
    wide = replace(step, grid=(1, device.capabilities.max_groups + 1, 1))
    with pytest.raises(nybble.DeviceError, match="a grid of .* workgroups; .* takes 65,535"):
        device.prepare(replace(plan, steps=(wide,)))


def test_foreign_cache_data_is_never_fatal(sketch: Any, tmp_path: Path) -> None:
    """A driver that refuses the data it is given gets none."""
    first = VulkanDevice(find_adapter("vulkan"), tmp_path)
    store = first.pipelines._store
    first.close()
    store.save(bytes([32, 0, 0, 0, 1, 0, 0, 0]) + first.adapter.identity + b"\xff" * 5000)
    assert store.load()
    second = VulkanDevice(find_adapter("vulkan"), tmp_path)
    second.prepare(negation(second, sketch)).close()
    second.close()
