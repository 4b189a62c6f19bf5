"""The Vulkan device: one recording replayed, in one memory or two, clean under validation."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nybble
from nybble.contract import Array, dtype_of
from nybble.devices import _OPENED_VULKAN, HostDevice, open_device
from nybble.devices.vulkan import Adapter, VulkanDevice, adapters, find_adapter
from nybble.devices.vulkan.transfer import Transfer
from nybble.graph import Graph, State, Value
from nybble.plan import Dispatch, HostCall, Plan, make_plan

pytestmark = pytest.mark.device
ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures"


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


def network(sketch: Any) -> Graph:
    """quantize, convolutions, dequantize, a mean; the codes are an output too."""
    codes = sketch.quantize(sketch.input("float32", 2, 3, 9, 7), 0.02, 3)
    for channels in (5, 17, 6):
        codes = sketch.convolve(codes, channels, kernel=(3, 3), padding=(1, 1), scale_in=0.1)
    mean = sketch.call(
        "aten.mean.dim", x=sketch.dequantize(codes, 0.05, -1), dim=(2, 3), keepdim=False
    )
    graph: Graph = sketch.graph(mean, codes)
    return graph


def fed(seed: int) -> list[Array]:
    """An input of the network."""
    return [np.random.default_rng(seed).normal(size=(2, 3, 9, 7)).astype(np.float32)]


def on_host(plan: Plan, *indices: int) -> Plan:
    """The plan with some of its steps run by the host instead."""
    steps = list(plan.steps)
    places = {p.value: p for p in plan.inputs} | {p.value: p for ps in plan.places for p in ps}
    for index in indices:
        step = steps[index]
        call = plan.calls[step.call]
        reads = {n: places[v] for n, v in call.inputs.items() if v.constant is None}
        steps[index] = HostCall(step.call, step.label, reads, plan.places[step.call])
    return replace(plan, steps=tuple(steps))


def free_bytes(device: VulkanDevice) -> int:
    """Bytes of all blocks that nobody has."""
    return sum(
        size
        for memory in device._memories.values()
        for block in memory._blocks
        for _, size in block.free
    )


def test_replays_equal_the_host(device: VulkanDevice, sketch: Any) -> None:
    """Fifty runs with changing inputs give the references' codes."""
    graph = network(sketch)
    host = HostDevice()
    reference = host.prepare(make_plan(graph, host.capabilities))
    expected = [reference.run(fed(seed)) for seed in range(3)]
    executable = device.prepare(make_plan(graph, device.capabilities))
    for turn in range(50):
        mean, codes = executable.run(fed(turn % 3))
        np.testing.assert_array_equal(expected[turn % 3][1], codes, strict=True)
        np.testing.assert_allclose(expected[turn % 3][0], mean, rtol=1e-5, atol=1e-6)
    executable.close()


def test_a_plan_is_recorded_once(
    device: VulkanDevice, sketch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first call nothing is recorded, allocated or bound any more."""
    executable = device.prepare(make_plan(network(sketch), device.capabilities))
    executable.run(fed(0))
    for name in ("vkBeginCommandBuffer", "vkAllocateMemory", "vkUpdateDescriptorSets"):
        monkeypatch.setattr(device.vk, name, None, raising=False)
    executable.run(fed(1))
    monkeypatch.undo()
    executable.close()


def test_runs_in_flight_keep_their_own_data(device: VulkanDevice, sketch: Any) -> None:
    """Many runs started before any is fetched have own inputs and outputs, whatever the order."""
    executable = device.prepare(make_plan(network(sketch), device.capabilities))
    expected = [executable.run(fed(seed)) for seed in range(6)]
    for _ in range(5):
        pending = [executable.submit(fed(seed)) for seed in range(6)]
        for seed in (3, 0, 5, 1, 4, 2):
            np.testing.assert_array_equal(expected[seed][1], pending[seed].result()[1])
    executable.close()


def test_threads_may_share_a_device(device: VulkanDevice, new_sketch: Any) -> None:
    """Plans that run in threads of their own, from their first run on, give their own results."""
    plans = [make_plan(network(new_sketch()), device.capabilities) for _ in range(3)]
    executables = [device.prepare(plan) for plan in plans]
    expected = [device.prepare(plans[0]).run(fed(seed))[1] for seed in range(3)]

    def work(number: int) -> list[Array]:
        return [executables[number].run(fed(number))[1] for _ in range(20)]

    with ThreadPoolExecutor() as threads:
        for number, results in enumerate(threads.map(work, range(3))):
            for result in results:
                np.testing.assert_array_equal(expected[number], result)


def test_dropped_runs_leave_nothing(device: VulkanDevice, sketch: Any) -> None:
    """A run whose outputs nobody asks for gives back what it used, for the next."""
    executable = device.prepare(make_plan(network(sketch), device.capabilities))
    expected = executable.run(fed(0))
    for seed in range(20):
        executable.submit(fed(seed))
    np.testing.assert_array_equal(expected[1], executable.run(fed(0))[1])
    assert 1 == len(executable._slots)
    executable.close()


@pytest.mark.parametrize("hosted", [(0,), (2,), (5,), (1, 2), (0, 3, 5)])
def test_host_calls_split_the_recording(
    device: VulkanDevice, sketch: Any, hosted: tuple[int, ...]
) -> None:
    """Calls on the host at the beginning, in between and at the end change no result."""
    graph = network(sketch)
    host = HostDevice()
    # Every value keeps a plain layout, as next to a call that the planner gives to the host.
    plain = make_plan(graph, host.capabilities, keep=True)
    expected = host.prepare(plain).run(fed(1))
    executable = device.prepare(plain)
    assert len(plain.calls) == len(plain.host_calls)
    np.testing.assert_array_equal(expected[1], executable.run(fed(1))[1])
    executable.close()
    chain = make_plan(sketch_chain(sketch), device.capabilities, keep=True)
    mixed = device.prepare(on_host(chain, *hosted))
    x = np.arange(-9, 11, dtype=np.float32)
    for shift in range(3):
        np.testing.assert_array_equal(x + shift, mixed.run([x + shift])[0])
    assert [i in hosted for i in range(6)] == [t.on_host for t in mixed.profile([x], 2)]
    mixed.close()


def sketch_chain(sketch: Any) -> Graph:
    """Six negations of twenty numbers, which give the input again."""
    sketch.inputs.clear()
    sketch.calls.clear()
    value = sketch.input("float32", 20)
    for _ in range(6):
        value = sketch.call("aten.neg.default", x=value)
    graph: Graph = sketch.graph(value)
    return graph


def counting(sketch: Any) -> Graph:
    """Adds its input to a state, and returns the sum."""
    x = sketch.input("float32", 5)
    dtype = dtype_of(np.zeros(0, np.float32))
    assert dtype is not None
    total = Value("total", dtype, (5,))
    added = sketch.call("aten.add.Tensor", x=total, other=x, alpha=1)
    return Graph(
        "counting", tuple(sketch.inputs), (added,), tuple(sketch.calls), (), (),
        (State("total", total, added, np.full(5, 10, np.float32)),),
    )  # fmt: skip


def test_states_stay_and_are_shared(device: VulkanDevice, new_sketch: Any) -> None:
    """Two plans see one state, which is read, written and outlives them."""
    states = device.new_states()
    one, two = (
        device.prepare(make_plan(counting(new_sketch()), device.capabilities), states)
        for _ in range(2)
    )
    ones = np.ones(5, np.float32)
    np.testing.assert_array_equal(np.full(5, 11), one.run([ones])[0])
    np.testing.assert_array_equal(np.full(5, 13), two.run([2 * ones])[0])
    pending = [(one, two)[turn % 2].submit([ones]) for turn in range(7)]
    np.testing.assert_array_equal(np.full(5, 20), states.read("total"))
    np.testing.assert_array_equal(np.full(5, 17), pending[3].result()[0])
    states.write("total", np.zeros(5, np.float32))
    np.testing.assert_array_equal(ones, one.run([ones])[0])
    one.close()
    two.close()
    np.testing.assert_array_equal(ones, states.read("total"))
    with pytest.raises(nybble.ContractError, match="state 'total': expected"):
        states.write("total", np.zeros(4, np.float32))
    states.close()


def test_closing_gives_all_memory_back(device: VulkanDevice, new_sketch: Any) -> None:
    """What a plan and its runs took is free after it is closed."""
    warm = device.prepare(make_plan(network(new_sketch()), device.capabilities))
    warm.run(fed(0))
    warm.close()
    before = free_bytes(device)
    executable = device.prepare(make_plan(network(new_sketch()), device.capabilities))
    pending = [executable.submit(fed(0)) for _ in range(3)]
    assert free_bytes(device) < before
    executable.close()
    assert before == free_bytes(device)
    with pytest.raises(nybble.DeviceError, match="is closed; load the program again"):
        pending[0].result()


def test_a_plan_of_the_same_structure_is_adopted(device: VulkanDevice, new_sketch: Any) -> None:
    """New parameters and grids take the old plan's place, runs under way unharmed."""

    def plan(scale: float, elements: int = 5000) -> Plan:
        sketch = new_sketch()
        x = sketch.input("float32", elements)
        return make_plan(sketch.graph(sketch.quantize(x, scale)), device.capabilities)

    x = np.linspace(-20, 20, 5000, dtype=np.float32)
    executable = device.prepare(plan(0.5))
    before = executable.submit([x])
    assert executable.adopt(plan(0.25))
    np.testing.assert_array_equal(np.round(x * 4), executable.run([x])[0])
    np.testing.assert_array_equal(np.round(x * 2), before.result()[0])
    step = executable.plan.steps[0]
    assert isinstance(step, Dispatch)
    assert step.grid[0] > 1
    assert executable.adopt(replace(executable.plan, steps=(replace(step, grid=(1, 1, 1)),)))
    (codes,) = executable.run([-x])
    assert np.round(-x * 4)[0] == codes[0]
    assert np.round(x * 4)[-1] == codes[-1]
    assert not executable.adopt(plan(0.5, 4000))
    executable.close()


def test_copies_reuse_their_command_buffer(
    device: VulkanDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred copies allocate no more command buffers than the first."""
    place = device.memory("device").allocate(64)
    device.transfer.clear([place])
    monkeypatch.setattr(device.vk, "vkAllocateCommandBuffers", None, raising=False)
    for value in range(100):
        device.transfer.write([(place, np.full(16, value, np.uint32))])
        assert value == device.transfer.read(place, 64)[0]
    monkeypatch.undo()
    device.memory("device").free(place)


def test_large_copies_go_in_pieces(device: VulkanDevice) -> None:
    """Words beyond the staging memory's size arrive whole, in both directions."""
    transfer = Transfer(device, room=4096)
    memory = device.memory("device")
    places = [memory.allocate(size) for size in (40, 10_000, 4096)]
    words = [np.arange(p.size // 4, dtype=np.uint32) + i for i, p in enumerate(places)]
    transfer.write(zip(places, words, strict=True))
    for place, expected in zip(places, words, strict=True):
        np.testing.assert_array_equal(expected, transfer.read(place, place.size))
    transfer.clear(places[1:2])
    assert not transfer.read(places[1], places[1].size).any()
    np.testing.assert_array_equal(words[2], transfer.read(places[2], places[2].size))
    for place in places:
        memory.free(place)
    transfer.close()


def test_independent_dispatches_have_no_barrier_between_them(
    device: VulkanDevice, sketch: Any
) -> None:
    """Ten results of one input need no order; what joins two of them waits."""
    x = sketch.input("float32", 64)
    results = [sketch.call("aten.neg.default", x=x) for _ in range(10)]
    joined = sketch.call("aten.add.Tensor", x=results[0], other=results[1], alpha=1)
    plan = make_plan(sketch.graph(*results, joined), device.capabilities)
    executable = device.prepare(plan)
    assert [False] * 10 + [True] == [executable.bound[i].waits for i in range(11)]
    executable.close()


def test_compiled_pipelines_are_kept_on_disk(sketch: Any, tmp_path: Path) -> None:
    """A device that closes leaves its cache; a later one reads it, and rebuilds a damaged one."""
    plan = None
    for content in ("absent", "kept", "damaged"):
        device = VulkanDevice(find_adapter("vulkan"), tmp_path)
        plan = plan or make_plan(network(sketch), device.capabilities)
        store = device.pipelines._store
        assert (content == "kept") == bool(store.load()), content
        executable = device.prepare(plan)
        executable.run(fed(0))
        executable.close()
        device.close()
        assert store.load(), content
        if content == "kept":
            store.path.write_bytes(b"no cache")


@pytest.mark.parametrize(("preferred", "kind"), [(True, "vulkan"), (False, "webgpu")])
def test_auto_takes_a_gpu_through_vulkan(
    monkeypatch: pytest.MonkeyPatch, kind: str, *, preferred: bool
) -> None:
    """A GPU with a Vulkan driver of its own is taken before WebGPU, a software one is not."""
    assert all(adapter.preferred != adapter.software for adapter in adapters())
    monkeypatch.setattr(Adapter, "preferred", preferred)
    assert kind == open_device("auto").info.name.split(":", maxsplit=1)[0]


@pytest.mark.parametrize(("result", "taken"), [(-13, True), (-2, False)])
def test_auto_takes_webgpu_where_vulkan_refuses_the_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, result: int, *, taken: bool
) -> None:
    """A driver that cannot compile a kernel is said and gone round; full memory is an error."""
    stored = np.load(FIXTURES / "conv_odd.npz")
    device = VulkanDevice(find_adapter("vulkan"), tmp_path)
    monkeypatch.setattr(Adapter, "preferred", True)
    monkeypatch.setitem(_OPENED_VULKAN, device.info.name, device)
    monkeypatch.setattr(device.vk, "vkCreateComputePipelines", lambda *_: result, raising=False)
    if taken:
        with pytest.warns(UserWarning, match=r"refused the shader of .* Running on webgpu:0 inst"):
            program = nybble.load(FIXTURES / "conv_odd.pte")
        np.testing.assert_array_equal(stored["output_0"], program(stored["input_0"]))
    else:
        with pytest.raises(nybble.OutOfDeviceMemoryError):
            nybble.load(FIXTURES / "conv_odd.pte")
    with pytest.raises(nybble.DeviceError):
        nybble.load(FIXTURES / "conv_odd.pte", device="vulkan")
    device.close()


def test_adapters_are_described() -> None:
    """Each has a name that opens it, and says driver, limits and features."""
    for adapter in adapters():
        info = adapter.info
        assert info.name == open_device(info.name).info.name
        assert info.backend.startswith("Vulkan 1.")
        assert info.driver
        assert "timelineSemaphore" in info.features
        assert info.limits["maxComputeWorkGroupCount"] >= 65535
