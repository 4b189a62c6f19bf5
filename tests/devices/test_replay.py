"""A plan on an adapter: the first run validates, later runs replay, and all are equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nybble
from nybble.contract import Array
from nybble.devices import Device, HostDevice, NullDevice, open_device
from nybble.graph import Graph
from nybble.plan import Capabilities, make_plan

pytestmark = pytest.mark.device


def network(sketch: Any) -> Graph:
    """quantize, three convolutions, dequantize, a mean, and the codes in between as well."""
    x = sketch.input("float32", 2, 3, 9, 7)
    codes = sketch.quantize(x, 0.02, 3)
    for channels in (5, 17, 6):
        codes = sketch.convolve(codes, channels, kernel=(3, 3), padding=(1, 1), scale_in=0.1)
    values = sketch.dequantize(codes, 0.05, -1)
    mean = sketch.call("aten.mean.dim", x=values, dim=(2, 3), keepdim=False)
    graph: Graph = sketch.graph(mean, codes)
    return graph


def fed(seed: int) -> list[Array]:
    """An input of the network."""
    return [np.random.default_rng(seed).normal(size=(2, 3, 9, 7)).astype(np.float32)]


def test_two_hundred_runs_give_one_result(device: Device, sketch: Any) -> None:
    """Replays equal the first run, also when other inputs ran in between."""
    executable = device.prepare(make_plan(network(sketch), device.capabilities))
    first = {seed: executable.run(fed(seed)) for seed in (0, 1)}
    assert not np.array_equal(first[0][1], first[1][1])
    for turn in range(200):
        for expected, got in zip(first[turn % 2], executable.run(fed(turn % 2)), strict=True):
            np.testing.assert_array_equal(expected, got, strict=True)
    executable.close()


def test_codes_equal_the_host(device: Device, sketch: Any) -> None:
    """What the device computes is what the references compute."""
    graph = network(sketch)
    executable = device.prepare(make_plan(graph, device.capabilities))
    host = HostDevice()
    expected = host.prepare(make_plan(graph, host.capabilities)).run(fed(3))
    got = executable.run(fed(3))
    np.testing.assert_array_equal(expected[1], got[1], strict=True)
    np.testing.assert_allclose(expected[0], got[0], rtol=1e-5, atol=1e-6)
    executable.close()


def test_plans_on_one_device_do_not_meet(device: Device, new_sketch: Any) -> None:
    """Two plans that run in turns give what each gives alone, and outlive each other."""
    one, two = (
        device.prepare(make_plan(network(new_sketch()), device.capabilities)) for _ in range(2)
    )
    expected = [one.run(fed(0)), two.run(fed(1))]
    for _ in range(3):
        np.testing.assert_array_equal(expected[0][1], one.run(fed(0))[1])
        np.testing.assert_array_equal(expected[1][1], two.run(fed(1))[1])
    one.close()
    np.testing.assert_array_equal(expected[1][1], two.run(fed(1))[1])
    two.close()


def test_nothing_is_recorded_ahead_for_a_plan_that_changes(
    adapter: str, new_sketch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan adopted before each run is recorded once a run: wgpu-native keeps what is dropped."""
    device: Any = open_device(adapter)
    plans = []
    for scale in (0.5, 0.25):
        sketch = new_sketch()
        codes = sketch.quantize(sketch.input("float32", 64), scale)
        plans.append(make_plan(sketch.graph(codes), device.capabilities))
    executable = device.prepare(plans[0])
    executable.run([np.ones(64, np.float32)])
    executable.adopt(plans[1])
    made = []
    create = device.handle.create_command_encoder

    def counted(**given: Any) -> Any:
        made.append(given)
        return create(**given)

    monkeypatch.setattr(device.handle, "create_command_encoder", counted)
    for turn in range(6):
        (codes,) = executable.run([np.ones(64, np.float32)])
        assert (4, 2)[turn % 2] == codes[0]
        assert executable.adopt(plans[turn % 2])
    assert 6 == len(made)
    executable.run([np.ones(64, np.float32)])
    executable.run([np.ones(64, np.float32)])
    assert 9 == len(made)
    executable.close()


def test_trace_gives_every_value(device: Device, sketch: Any) -> None:
    """A plan that keeps all values gives each call's results."""
    graph = network(sketch)
    plan = make_plan(graph, device.capabilities, keep=True)
    executable = device.prepare(plan)
    traced = executable.trace(fed(0))
    outputs = executable.run(fed(0))
    assert len(plan.calls) == len(traced)
    results = {v: r for c, rs in zip(plan.calls, traced, strict=True)
               for v, r in zip(c.outputs, rs, strict=True)}  # fmt: skip
    for value, output in zip(graph.outputs, outputs, strict=True):
        if value in results:
            np.testing.assert_array_equal(output, results[value])
    executable.close()


def test_cut_calls_equal_whole_ones(device: Device, sketch: Any) -> None:
    """A tensor beyond the binding limit gives the same codes in pieces."""
    count = (1 << 18) + 12
    graph = sketch.graph(sketch.quantize(sketch.input("float32", count), 0.03, 5))
    small = Capabilities(max_binding=1 << 18, packed_dot=device.capabilities.packed_dot)
    plan = make_plan(graph, small)
    assert 5 == len(plan.steps)
    x = np.random.default_rng(0).normal(size=count).astype(np.float32)
    cut, whole = device.prepare(plan), device.prepare(make_plan(graph, device.capabilities))
    np.testing.assert_array_equal(whole.run([x])[0], cut.run([x])[0])
    cut.close()
    whole.close()


def test_folded_grids_equal_whole_ones(device: Device, sketch: Any) -> None:
    """A grid beyond the groups of one dimension reaches every element, and no more."""
    count = 100_003
    x = sketch.input("int8", 1, count, 1, 1)
    graph = sketch.graph(sketch.dequantize(x, 0.25, 7), sketch.call("aten.neg.default",
                         x=sketch.dequantize(x, 0.25, 7)))  # fmt: skip
    narrow = Capabilities(max_groups=7, packed_dot=device.capabilities.packed_dot)
    plan = make_plan(graph, narrow)
    assert any(step.grid[1] > 1 for step in plan.steps)  # type: ignore[union-attr]
    executable = device.prepare(plan)
    codes = np.random.default_rng(0).integers(-128, 128, (1, count, 1, 1)).astype(np.int8)
    expected = (codes.astype(np.float32) - 7) * np.float32(0.25)
    one, two = executable.run([codes])
    np.testing.assert_array_equal(expected, one)
    np.testing.assert_array_equal(-expected, two)
    executable.close()


def test_empty_tensors_run(device: Device, sketch: Any) -> None:
    """Tensors without elements go in and come out."""
    x = sketch.input("float32", 2, 0, 3, 3)
    executable = device.prepare(
        make_plan(sketch.graph(sketch.dequantize(sketch.quantize(x)), x), device.capabilities)
    )
    for result in executable.run([np.zeros((2, 0, 3, 3), np.float32)]):
        assert (2, 0, 3, 3) == result.shape
    executable.close()


def test_submitted_runs_keep_their_own_results(device: Device, sketch: Any) -> None:
    """Runs that are started before the first is fetched give each its own outputs."""
    executable = device.prepare(make_plan(network(sketch), device.capabilities))
    expected = [executable.run(fed(seed))[1] for seed in range(4)]
    pending = [executable.submit(fed(seed)) for seed in range(4)]
    for seed in (2, 0, 3, 1):
        np.testing.assert_array_equal(expected[seed], pending[seed].result()[1])
    executable.close()


def test_closing_frees_the_buffers(device: Device, new_sketch: Any) -> None:
    """A closed executable's buffers are destroyed; running it again is a typed error."""
    executable: Any = device.prepare(make_plan(network(new_sketch()), device.capabilities))
    executable.run(fed(0))
    executable.close()
    with pytest.raises(nybble.DeviceError):
        executable.run(fed(0))
    # The device itself goes on.
    again = device.prepare(make_plan(network(new_sketch()), device.capabilities))
    again.run(fed(0))
    again.close()


def test_profile_without_timestamps(device: Any, sketch: Any) -> None:
    """An adapter without timestamps is timed from submission to idle."""
    executable = device.prepare(make_plan(network(sketch), device.capabilities))
    had, device.has_timestamps = device.has_timestamps, False
    try:
        timings = executable.profile(fed(0), 2)
    finally:
        device.has_timestamps = had
    assert len(executable.plan.steps) == len(timings)
    assert all(timing.seconds > 0 for timing in timings)
    executable.close()


def test_null_device_gives_zeros(sketch: Any) -> None:
    """The null device takes any plan, and computes nothing."""
    device = NullDevice()
    executable = device.prepare(make_plan(network(sketch), device.capabilities))
    outputs = executable.run(fed(0))
    assert [(2, 6), (2, 6, 9, 7)] == [output.shape for output in outputs]
    assert not any(output.any() for output in outputs)
