"""Dispatches timed by themselves, on every adapter; and how the Vulkan device waits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import nybble
from nybble.devices import Device, open_device
from nybble.devices.base import check_dispatches
from nybble.devices.vulkan import VulkanDevice, find_adapter
from nybble.devices.vulkan import device as vulkan_device
from nybble.graph import GraphBuilder
from nybble.plan import Dispatch, HostCall, Plan, make_plan

pytestmark = pytest.mark.device


def two_sizes(device: Device) -> Plan:
    """A plan whose first dispatch works on six numbers and whose second on very many."""
    b = GraphBuilder()
    small = b.input("small", "float32", (2, 3))
    large = b.input("large", "float32", (count(device),))
    outputs = [b.call("aten.relu.default", x=value) for value in (small, large)]
    return make_plan(b.finish(outputs), device.capabilities)


def count(device: Device) -> int:
    """So many numbers that their dispatch is the slower one beyond doubt, GPU or processor."""
    return 1 << (20 if device.capabilities.software else 26)


def fed(device: Device) -> list[Any]:
    """What the plan takes."""
    return [np.full((2, 3), -1, np.float32), np.linspace(-1, 1, count(device), dtype=np.float32)]


def test_rows_of_a_larger_step_take_longer(device: Any) -> None:
    """Each row gives a time per repeat, of the steps asked for alone, and later runs are right."""
    executable = device.prepare(two_sizes(device))
    executable.run(fed(device))
    small, large, both = (executable.time_steps(s, 2, 5) for s in ([0], [1], [1, 0, 1]))
    assert (5, 5, 5) == (len(small), len(large), len(both))
    assert 0 <= np.median(small) < np.median(large) < np.median(both), (small, large, both)
    of_six, of_many = executable.run(fed(device))
    executable.close()
    np.testing.assert_array_equal(np.zeros((2, 3), np.float32), of_six)
    np.testing.assert_array_equal(np.maximum(fed(device)[1], 0), of_many)


def test_time_is_of_one_repeat(device: Any) -> None:
    """A row of many repeats takes so many times longer, and its time is divided by them."""
    executable = device.prepare(two_sizes(device))
    executable.run(fed(device))
    once, often = (np.median(executable.time_steps([1], repeats, 5)) for repeats in (2, 16))
    executable.close()
    assert once / 3 < often < 3 * once


def test_step_in_a_row_waits_for_one_whose_result_it_overwrites() -> None:
    """A repeat on Vulkan has the barrier of a program of such dispatches, others have none."""
    device: Any = open_device("vulkan")
    b = GraphBuilder()
    x = b.input("x", "float32", (8,))
    outputs = [b.call(f"aten.{name}.default", x=x) for name in ("relu", "neg")]
    executable = device.prepare(make_plan(b.finish(outputs), device.capabilities))
    waits = [[item.waits for item in executable.row(s, 2)] for s in ([0], [0, 1])]
    executable.close()
    assert [[False, True], [False, False, True, False]] == waits


def test_step_without_a_dispatch_is_not_timed(device: Any) -> None:
    """A number beyond the plan is refused with those that exist, on the way to any GPU."""
    executable = device.prepare(two_sizes(device))
    with pytest.raises(nybble.ContractError, match=r"step 2 .* received no step; .* \[0, 1\]"):
        executable.time_steps([0, 2], 1)
    executable.close()


def test_call_on_the_host_is_not_timed_as_a_dispatch(device: Any) -> None:
    """A step that the host runs is refused as one."""
    plan = two_sizes(device)
    first = plan.steps[0]
    assert isinstance(first, Dispatch)
    hosted = HostCall(first.call, first.label, {"x": plan.inputs[0]}, plan.places[first.call])
    with pytest.raises(nybble.ContractError, match="step 0 .* received a call on the host"):
        check_dispatches(replace(plan, steps=(hosted, *plan.steps[1:])), [0])


def test_run_that_ends_soon_is_not_slept_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Within the time that a wait asks, the driver's sleeping wait is never called."""
    device: Any = open_device("vulkan")
    executable = device.prepare(two_sizes(device))
    executable.run(fed(device))
    monkeypatch.setattr(vulkan_device, "_SPIN_SECONDS", 60.0)
    monkeypatch.setattr(device.vk, "vkWaitSemaphores", None)
    np.testing.assert_array_equal(np.maximum(fed(device)[1], 0), executable.run(fed(device))[1])
    monkeypatch.undo()
    executable.close()


def test_run_that_takes_long_is_slept_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """After that time the driver's wait is called, and the result is right."""
    device: Any = open_device("vulkan")
    executable = device.prepare(two_sizes(device))
    slept = []
    wait = device.vk.vkWaitSemaphores

    def sleep(*arguments: Any) -> int:
        slept.append(arguments)
        return int(wait(*arguments))

    executable.run(fed(device))
    monkeypatch.setattr(device, "_is_done_soon", lambda value: False)
    monkeypatch.setattr(device.vk, "vkWaitSemaphores", sleep)
    np.testing.assert_array_equal(np.maximum(fed(device)[1], 0), executable.run(fed(device))[1])
    monkeypatch.undo()
    executable.close()
    assert slept


def test_counter_of_a_lost_device_is_a_loss(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A timeline at its largest number, which drivers show for a lost device, ends no wait."""
    device: Any = VulkanDevice(find_adapter("vulkan"), tmp_path)
    executable = device.prepare(two_sizes(device))

    def gone(*arguments: Any) -> int:
        arguments[-1][0] = 2**64 - 1
        return 0

    monkeypatch.setattr(device.vk, "vkGetSemaphoreCounterValue", gone, raising=False)
    with pytest.raises(nybble.DeviceLostError, match="was lost"):
        executable.run(fed(device))
    assert device.lost
