"""Where a Vulkan device's memory runs out half way, what was begun is undone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nybble
from nybble.contract import DTYPES
from nybble.devices.vulkan import VulkanDevice, find_adapter
from nybble.devices.vulkan.memory import Use
from nybble.graph import Graph, State, Value
from nybble.plan import Plan, make_plan

pytestmark = pytest.mark.device


@pytest.fixture
def device(tmp_path: Path) -> Iterator[VulkanDevice]:
    """The best adapter, taken for a card with memory of its own."""
    adapter = find_adapter("vulkan")
    discrete = replace(adapter, info=replace(adapter.info, kind="discrete gpu"))
    opened = VulkanDevice(discrete, tmp_path)
    yield opened
    opened.close()


def negation(device: VulkanDevice, sketch: Any) -> Plan:
    """A plan of one dispatch."""
    x = sketch.input("float32", 64)
    return make_plan(sketch.graph(sketch.call("aten.neg.default", x=x)), device.capabilities)


def free(device: VulkanDevice, use: Use) -> list[tuple[int, int]]:
    """The free ranges of all blocks of a use."""
    return [span for block in device.memory(use)._blocks for span in block.free]


def refusing(monkeypatch: pytest.MonkeyPatch, device: VulkanDevice, use: Use, turns: int) -> None:
    """Make the first allocations of a use fail."""
    memory, left = device.memory(use), [turns]
    allocate = memory.allocate

    def scarce(size: int) -> Any:
        left[0] -= 1
        if left[0] >= 0:
            raise nybble.OutOfDeviceMemoryError("full")
        return allocate(size)

    monkeypatch.setattr(memory, "allocate", scarce)


def test_a_state_that_could_not_be_filled_is_filled_by_the_next_plan(
    device: VulkanDevice, sketch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where its content finds no staging memory, a state is not taken for one that has it."""
    x, total = sketch.input("float32", 5), Value("total", DTYPES["float32"], (5,))
    added = sketch.call("aten.add.Tensor", x=total, other=x, alpha=1)
    state = State("total", total, added, np.full(5, 10, np.float32))
    graph = Graph("counting", (x,), (added,), tuple(sketch.calls), (), (), (state,))
    plan, states = make_plan(graph, device.capabilities), device.new_states()
    refusing(monkeypatch, device, "upload", 1)
    with pytest.raises(nybble.OutOfDeviceMemoryError, match="full"):
        device.prepare(plan, states)
    assert () == states.names()
    assert [(0, 64 << 20)] == free(device, "device")
    executable = device.prepare(plan, states)
    np.testing.assert_array_equal(np.full(5, 11), executable.run([np.ones(5, np.float32)])[0])
    executable.close()
    states.close()


def test_a_run_that_finds_no_staging_memory_leaves_nothing(
    device: VulkanDevice, sketch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory for a run's inputs is given back where there is none for its outputs."""
    executable = device.prepare(negation(device, sketch))
    refusing(monkeypatch, device, "download", 1)
    with pytest.raises(nybble.OutOfDeviceMemoryError, match="full"):
        executable.run([np.ones(64, np.float32)])
    assert [(0, 8 << 20)] == free(device, "upload")
    np.testing.assert_array_equal(-np.ones(64), executable.run([np.ones(64, np.float32)])[0])
    executable.close()
