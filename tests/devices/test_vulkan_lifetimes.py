"""What shares a process: plans in threads, plans that nobody closed, both devices at once."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nybble
from nybble.contract import DTYPES, Array
from nybble.devices.vulkan import VulkanDevice, find_adapter
from nybble.graph import Graph, State, Value
from nybble.plan import Dispatch, Plan, make_plan

pytestmark = pytest.mark.device
FIXTURES = Path(__file__).parents[1] / "fixtures"
ONES = np.ones(500, np.float32)


@pytest.fixture(params=["one memory", "two memories"])
def device(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[VulkanDevice]:
    """The best adapter; taken for a card with memory of its own, all data goes through copies."""
    adapter = find_adapter("vulkan")
    if request.param == "two memories":
        adapter = replace(adapter, info=replace(adapter.info, kind="discrete gpu"))
    elif not adapter.unified:
        pytest.skip("this adapter has memory of its own")
    opened = VulkanDevice(adapter, tmp_path)
    yield opened
    opened.close()


def counting(device: VulkanDevice, sketch: Any) -> Plan:
    """A plan that adds its input to a state, and returns minus the sum and its exponential."""
    x = sketch.input("float32", 500)
    total = Value("total", DTYPES["float32"], (500,))
    added = sketch.call("aten.add.Tensor", x=total, other=x, alpha=1)
    minus = sketch.call("aten.neg.default", x=added)
    state = State("total", total, added, np.zeros(500, np.float32))
    results = (minus, sketch.call("aten.exp.default", x=minus))
    graph = Graph(
        "counting", tuple(sketch.inputs), results, tuple(sketch.calls), (), (), (state,)
    )  # fmt: skip
    return make_plan(graph, device.capabilities)


def free_bytes(device: VulkanDevice) -> int:
    """Bytes of all blocks that nobody has."""
    return sum(
        size
        for memory in device._memories.values()
        for block in memory._blocks
        for _, size in block.free
    )


def test_what_nobody_closed_is_freed_when_the_next_plan_is_prepared(
    device: VulkanDevice, new_sketch: Any
) -> None:
    """Plans that are dropped in a loop hold no more memory than one, states included."""
    free = []
    for _ in range(4):
        states = device.new_states()
        executable = device.prepare(counting(device, new_sketch()), states)
        np.testing.assert_array_equal(-ONES, executable.run([ONES])[0])
        free.append(free_bytes(device))
        del states, executable
        gc.collect()
    assert [free[0]] * 4 == free


def test_garbage_makes_room_for_a_plan(
    device: VulkanDevice, new_sketch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where memory is short, what nobody holds any more is collected before it is an error."""
    plan, memory = counting(device, new_sketch()), device.memory("device")
    allocate, free, freed = memory.allocate, memory.free, list[Any]()

    def scarce(size: int) -> Any:
        if not freed:
            raise nybble.OutOfDeviceMemoryError("full")
        return allocate(size)

    def noted(allocation: Any) -> None:
        freed.append(allocation)
        free(allocation)

    gc.disable()
    try:
        device.prepare(plan).run([ONES])
        monkeypatch.setattr(memory, "allocate", scarce)
        monkeypatch.setattr(memory, "free", noted)
        device.prepare(plan).close()
    finally:
        gc.enable()


def test_plans_may_be_prepared_in_threads(
    device: VulkanDevice, new_sketch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight threads that prepare at once compile each shader once, and all results are right."""
    compiled = []
    create = device.vk.vkCreateComputePipelines

    def counted(*arguments: Any) -> int:
        compiled.append(arguments)
        time.sleep(0.02)
        result: int = create(*arguments)
        return result

    monkeypatch.setattr(device.vk, "vkCreateComputePipelines", counted)
    plans = [counting(device, new_sketch()) for _ in range(8)]

    def work(plan: Plan) -> Array:
        executable = device.prepare(plan)
        result = executable.run([ONES])[0]
        executable.close()
        return result

    with ThreadPoolExecutor(len(plans)) as threads:
        for result in threads.map(work, plans):
            np.testing.assert_array_equal(-ONES, result)
    shaders = {step.shader for step in plans[0].steps if isinstance(step, Dispatch)}
    assert len(shaders) == len(compiled)


def answers(name: str) -> tuple[Array, Array]:
    """A fixture's input and the eager model's output."""
    stored = np.load(FIXTURES / f"{name}.npz")
    return stored["input_0"], stored["output_0"]


def test_webgpu_and_vulkan_share_a_process() -> None:
    """Programs on both give equal codes in turns, and either goes on when the other is closed."""
    x, expected = answers("conv_odd")
    for first, second in (("vulkan", "webgpu"), ("webgpu", "vulkan")):
        closing = nybble.load(FIXTURES / "conv_odd.pte", device=first)
        staying = nybble.load(FIXTURES / "conv_odd.pte", device=second)
        for _ in range(3):
            np.testing.assert_array_equal(expected, closing(x))
            np.testing.assert_array_equal(expected, staying(x))
        closing.close()
        np.testing.assert_array_equal(expected, staying(x))
        assert staying.verify(x)
        staying.close()


def test_programs_of_both_devices_run_in_threads() -> None:
    """Six threads, each loading, running and closing programs on either device, never meet."""

    def work(number: int) -> None:
        name = ("conv_odd", "small_cnn", "depthwise")[number % 3]
        x, expected = answers(name)
        for turn in range(6):
            device = ("vulkan", "webgpu")[(number + turn) % 2]
            with nybble.load(FIXTURES / f"{name}.pte", device=device) as program:
                for _ in range(5):
                    np.testing.assert_array_equal(expected, program(x))

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, range(6)))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts what Linux lists")
def test_loading_two_hundred_times_keeps_nothing() -> None:
    """Memory of the device, its blocks and open files are the same after 10 and 200 programs."""
    x, expected = answers("small_cnn")
    held = []
    for turn in range(200):
        program = nybble.load(FIXTURES / "small_cnn.pte", device="vulkan")
        np.testing.assert_array_equal(expected, program(x))
        device: Any = program["forward"].device
        program.close()
        if turn in (9, 199):
            blocks = [(use, memory.held) for use, memory in device._memories.items()]
            held.append((free_bytes(device), blocks, len(list(Path("/proc/self/fd").iterdir()))))
    assert held[0] == held[1]
