"""Plans for devices that do not exist: everything here is decided before a GPU is touched."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nybble
from nybble.contract import REGISTRY, Alias, Kernel
from nybble.errors import OutOfDeviceMemoryError
from nybble.graph import Graph, Value
from nybble.passes import run_passes
from nybble.plan import Capabilities, Dispatch, HostCall, Plan, make_plan
from nybble.plan.choose import choose_kernels, viable_kernels, why_on_host

ROOT = Path(__file__).parents[2]
SMALLEST = Capabilities()


def written_and_read(step: Dispatch | HostCall) -> tuple[set[int], set[int]]:
    """The buffers that a step writes and those it reads."""
    if isinstance(step, HostCall):
        return {p.buffer for p in step.writes}, {p.buffer for p in step.reads.values()}
    return {r.buffer for r in step.writes}, {r.buffer for r in step.reads}


def replay(plan: Plan) -> None:
    """Follow which value each buffer holds; a step that finds another than it needs fails."""
    holds: dict[int, Value] = {place.buffer: place.value for place in plan.inputs}
    origin: dict[Value, Value] = {}

    def root(value: Value) -> Value:
        return origin.get(value, value)

    stepped = {step.call for step in plan.steps}
    order = sorted({*stepped, *range(len(plan.calls))})
    for index in order:
        call = plan.calls[index]
        places = plan.places[index]
        if index not in stepped:
            sources = [v for v in call.inputs.values() if v.constant is None]
            if sources and math.prod(call.outputs[0].shape):
                origin[call.outputs[0]] = root(sources[0])
                assert holds[places[0].buffer] is root(sources[0])
            continue
        for step in (s for s in plan.steps if s.call == index):
            writes, reads = written_and_read(step)
            constants = {c.buffer for c in plan.constants}
            wanted = {root(v) for v in call.inputs.values() if v.constant is None}
            for buffer in reads - constants:
                assert holds[buffer] in wanted, f"{step.label} reads what was overwritten"
            assert not writes & reads, "no kernel here works in place"
            assert not writes & constants
        for place in places:
            holds[place.buffer] = place.value
    for place in plan.outputs:
        if place.value.constant is None:
            assert holds[place.buffer] is root(place.value)


UNARY = ["aten.neg.default", "aten.abs.default", "aten.relu.default"]


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_no_live_value_is_overwritten(new_sketch: Any, data: st.DataObject) -> None:
    """In random graphs of elementwise calls and views every step finds the values it reads."""
    sketch = new_sketch()
    values = [sketch.input("float32", 4, 6) for _ in range(data.draw(st.integers(1, 3)))]
    for _ in range(data.draw(st.integers(1, 15))):
        kind = data.draw(st.sampled_from(["unary", "binary", "view", "codes"]))
        one = data.draw(st.sampled_from(values))
        if kind == "unary":
            made = sketch.call(data.draw(st.sampled_from(UNARY)), x=one)
        elif kind == "binary":
            made = sketch.call("aten.add.Tensor", x=one, other=data.draw(st.sampled_from(values)))
        elif kind == "view":
            flat = sketch.call("aten.view_copy.default", x=one, size=(24,))
            made = sketch.call("aten.view_copy.default", x=flat, size=(4, 6))
        else:
            made = sketch.dequantize(sketch.quantize(one))
        values.append(made)
    outputs = data.draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
    graph = sketch.graph(*outputs)
    for one in (graph, run_passes(graph)):
        plan = make_plan(one, SMALLEST)
        replay(plan)
        replay(make_plan(one, replace(SMALLEST, kernels=False)))


def inverted_residuals(sketch: Any, blocks: int) -> Graph:
    """A chain like MobileNetV2's: expand, depthwise, project, add, at falling resolution."""
    size, channels = 56, 16
    x = sketch.quantize(sketch.input("float32", 1, channels, size, size))
    for block in range(blocks):
        stride = 2 if block % 3 == 2 else 1
        wide = sketch.convolve(x, channels * 6)
        filters = np.ones((3, 3, channels * 6), np.int8)
        deep = sketch.call(
            "et_vk.q8ta_conv2d_dw.default", x=wide, scale_in=0.5, zero_point_in=0,
            weight=sketch.constant(filters),
            weight_sums=sketch.constant(np.zeros(channels * 6, np.int32)),
            weight_scales=sketch.constant(np.ones(channels * 6, np.float32)),
            scale_out=0.5, zero_point_out=0, bias=None, kernel=(3, 3), stride=(stride, stride),
            padding=(1, 1), dilation=(1, 1), groups=channels * 6, activation="none",
        )  # fmt: skip
        channels = channels * stride
        narrow = sketch.convolve(deep, channels)
        if stride == 1:
            narrow = sketch.call(
                "et_vk.q8ta_add.default", a=x, b=narrow, scale_a=0.5, zero_point_a=0,
                scale_b=0.5, zero_point_b=0, scale_out=0.5, zero_point_out=0, alpha=1,
            )  # fmt: skip
        x = narrow
    graph: Graph = sketch.graph(sketch.dequantize(x))
    return graph


@pytest.mark.parametrize("software", [True, False])
def test_peak_is_near_the_largest_live_set(sketch: Any, software: bool) -> None:
    """Buffers of a MobileNet-like chain hold at most 1.3 times what must exist at once."""
    plan = make_plan(inverted_residuals(sketch, 8), replace(SMALLEST, software=software))
    assert plan.largest_live_set() > 0
    assert plan.activation_bytes <= 1.3 * plan.largest_live_set()
    assert plan.device_bytes <= plan.constant_bytes * 1.02 + plan.activation_bytes + (1 << 16)
    replay(plan)


MODELS = sorted((ROOT / "bench" / "models").glob("*.pte"))


@pytest.mark.parametrize(
    "path", MODELS or [ROOT / "tests/fixtures/inverted_residual.pte"], ids=lambda p: p.stem
)
def test_peak_of_exported_programs(path: Path) -> None:
    """Exported MobileNets, where they have been made, stay within 1.3 times the live set too."""
    for method in nybble.load(path, device="null").values():
        # The unpadded live set of a tiny program is below what buffers' alignment adds.
        assert method.plan.activation_bytes <= 1.3 * method.plan.largest_live_set() + 256


def test_live_set_counts_a_view_once(sketch: Any) -> None:
    """A view lies where its source does: it extends the source's life and adds nothing."""
    x = sketch.input("float32", 256)
    made = sketch.call("aten.neg.default", x=x)
    view = sketch.call("aten.view_copy.default", x=made, size=(16, 16))
    other = sketch.call("aten.abs.default", x=x)
    last = sketch.call("aten.neg.default", x=sketch.call("aten.neg.default", x=other))
    plan = make_plan(sketch.graph(view, last), SMALLEST)
    # input, neg and abs at the second step; then neg, abs and its successor.
    assert 3 * 1024 == plan.largest_live_set()
    assert 3 * 1024 == plan.activation_bytes


def test_views_take_no_step_and_no_buffer(sketch: Any) -> None:
    """Reshaping is no work: the result is the source's buffer."""
    x = sketch.input("float32", 4, 6)
    view = sketch.call("aten.view_copy.default", x=x, size=(24,))
    plan = make_plan(sketch.graph(sketch.call("aten.neg.default", x=view)), SMALLEST)
    assert ["aten.neg.default unary"] == [step.label.rsplit(" ", 1)[0] + " unary"
                                          for step in plan.steps]  # fmt: skip
    assert plan.inputs[0].buffer == plan.places[0][0].buffer


def test_large_elementwise_calls_are_cut(sketch: Any) -> None:
    """Beyond the binding limit a flat kernel runs in pieces that tile the tensors exactly."""
    small = replace(SMALLEST, max_binding=1 << 18)
    count = (1 << 18) + 12
    plan = make_plan(sketch.graph(sketch.quantize(sketch.input("float32", count))), small)
    assert 5 == len(plan.steps)
    for itemsize, side in ((4, "reads"), (1, "writes")):
        end = 0
        for step in plan.steps:
            assert isinstance(step, Dispatch)
            (region,) = getattr(step, side)
            assert end == region.offset
            assert region.offset % 256 == 0
            assert region.size <= small.max_binding
            end = region.offset + region.size
        assert count * itemsize <= end <= count * itemsize + 16
    words = [_words(plan, step) for step in plan.steps]
    assert [1 << 14] * 4 + [3] == words


def _words(plan: Plan, step: Dispatch | HostCall) -> int:
    """The third field of a dispatch's record, after zero and grid_width."""
    assert isinstance(step, Dispatch)
    return int.from_bytes(plan.params[step.params.offset + 8 : step.params.offset + 12], "little")


def test_calls_beyond_every_limit_go_to_the_host(sketch: Any) -> None:
    """Where no kernel can be cut, the call runs on the host, and the reason names the tensor."""
    small = replace(SMALLEST, max_binding=1 << 16)
    x = sketch.input("float32", 1, 200, 100)
    graph = sketch.graph(sketch.call("aten.permute_copy.default", x=x, dims=(0, 2, 1)))
    plan = make_plan(graph, small)
    assert 1 == len(plan.host_calls)
    assert "'x' takes 80,000 bytes, the device binds at most 65,536" in why_on_host(
        plan.calls[0], small
    )


def test_value_beyond_a_buffer_is_refused_before_allocation(sketch: Any) -> None:
    """A value that no buffer of the device holds is named with its size, and what to do."""
    x = sketch.input("float32", 1 << 10, 1 << 20)
    graph = sketch.graph(sketch.call("aten.neg.default", x=x))
    with pytest.raises(OutOfDeviceMemoryError) as caught:
        make_plan(graph, SMALLEST)
    assert (
        "%input_0 (float32[1024, 1048576]) takes 4,294,967,296 bytes; a buffer of this device "
        "holds at most 268,435,456. Use a smaller batch or device='host'"
    ) == str(caught.value)


@pytest.mark.parametrize(
    ("groups", "grid"),
    [(1, (1, 1, 1)), (65535, (65535, 1, 1)), (65536, (32768, 2, 1)), (200_001, (50001, 4, 1))],
)
def test_linear_grids_are_folded(sketch: Any, groups: int, grid: tuple[int, ...]) -> None:
    """More groups than a dimension allows become rows; width times rows covers them all."""
    roomy = replace(SMALLEST, max_binding=1 << 30, max_buffer=1 << 30)
    x = sketch.input("float32", groups * 1024 - 5)
    plan = make_plan(sketch.graph(sketch.call("aten.neg.default", x=x)), roomy)
    (step,) = plan.steps
    assert isinstance(step, Dispatch)
    assert grid == step.grid
    assert grid[0] * grid[1] >= groups
    width = plan.params[step.params.offset + 4 : step.params.offset + 8]
    assert grid[0] == int.from_bytes(width, "little")


def layouts(plan: Plan) -> list[str]:
    """The conversions of a plan, by the value that they convert."""
    return [c.origin for c in plan.calls if c.operator.name == "nybble.relayout.default"]


def test_channels_last_codes_need_no_conversion(sketch: Any) -> None:
    """Between quantize and dequantize int8 images stay channels-last: nothing is converted."""
    plan = make_plan(inverted_residuals(sketch, 2), SMALLEST)
    assert [] == layouts(plan)
    between = [p.layout.name for places in plan.places[:-1] for p in places]
    assert {"channels4"} == set(between)
    assert "row_major" == plan.outputs[0].layout.name


def test_conversions_stand_at_borders_only(sketch: Any) -> None:
    """int8 inputs and outputs are row-major outside: one conversion each, shared by its readers."""
    x = sketch.input("int8", 1, 6, 5, 5)
    one, two = sketch.convolve(x, 8), sketch.convolve(x, 4)
    plan = make_plan(sketch.graph(one, sketch.dequantize(two)), SMALLEST)
    converted = layouts(plan)
    assert "layout of %input_0" in converted
    assert 1 == converted.count("layout of %input_0")
    assert 2 == len(converted)
    assert ["row_major", "row_major"] == [p.layout.name for p in plan.outputs]


def test_zero_size_calls_dispatch_nothing(sketch: Any) -> None:
    """A result without elements takes no step, and still has a place to be read from."""
    x = sketch.input("float32", 0, 4)
    plan = make_plan(sketch.graph(sketch.dequantize(sketch.quantize(x))), SMALLEST)
    assert () == plan.steps
    assert 0 == plan.outputs[0].nbytes
    assert all(size >= 16 for size in plan.buffers)


def test_kept_values_all_have_their_own_buffer(sketch: Any) -> None:
    """For verification every value survives the run."""
    graph = inverted_residuals(sketch, 3)
    plan = make_plan(graph, SMALLEST, keep=True)
    buffers = [p.buffer for places in (plan.inputs, *plan.places) for p in places]
    assert len(buffers) == len(set(buffers))


def test_constants_are_packed_once(sketch: Any) -> None:
    """A constant that several calls read in one layout is uploaded once."""
    x = sketch.input("float32", 64)
    shared = sketch.constant(np.ones(64, np.float32))
    one = sketch.call("aten.mul.Tensor", x=x, other=shared)
    plan = make_plan(sketch.graph(sketch.call("aten.mul.Tensor", x=one, other=shared)), SMALLEST)
    assert 256 == plan.constant_bytes
    assert 1 == len(plan.constants)


def test_constant_output_has_a_buffer(sketch: Any) -> None:
    """A method that returns a constant has it on the device like any result."""
    sketch.input("float32", 3)
    fixed = sketch.call("et_vk.prepack.default", x=sketch.constant(np.ones(5, np.float32)))
    plan = make_plan(run_passes(sketch.graph(fixed)), SMALLEST)
    assert plan.outputs[0].buffer < len(plan.buffers)
    assert plan.outputs[0].buffer in {c.buffer for c in plan.constants}
    assert plan.buffers[plan.outputs[0].buffer] >= 20


def test_attribute_beyond_32_bits_goes_to_the_host(sketch: Any) -> None:
    """A number that no shader holds is never cut off: the reference takes the call."""
    x = sketch.input("int8", 1, 3, 2, 2)
    graph = sketch.graph(sketch.convolve(x, 4, stride=(2**33, 2**33)))
    (call,) = graph.calls
    assert [] == viable_kernels(call, SMALLEST)
    assert "does not fit 32 bits" in why_on_host(call, SMALLEST)
    assert 1 == len(make_plan(graph, SMALLEST).host_calls)


def test_device_without_kernels_runs_references(sketch: Any) -> None:
    """The host's plan is a list of references in row-major layout."""
    graph = inverted_residuals(sketch, 2)
    plan = make_plan(graph, replace(SMALLEST, kernels=False))
    assert len(graph.calls) == len(plan.host_calls) == len(plan.steps)
    assert {"row_major"} == {p.layout.name for places in plan.places for p in places}


def test_forced_kernel_is_taken(sketch: Any) -> None:
    """Tests choose a kernel whatever the planner prefers."""
    graph = sketch.graph(sketch.quantize(sketch.input("float32", 1, 3, 4, 4)))
    (call,) = graph.calls
    for kernel in REGISTRY[call.operator.name].kernels:
        if isinstance(kernel, Alias):
            continue
        chosen = choose_kernels(graph, SMALLEST, {call: kernel})
        assert kernel is chosen.choices[0].kernel


@pytest.mark.parametrize("limit", ["max_bindings", "max_threads"])
def test_kernels_respect_limits(limit: str) -> None:
    """No operator's kernel needs more than the smallest WebGPU device unless it asks for it."""
    for operator in set(REGISTRY.values()):
        tensors = len([a for a in operator.arguments if a.is_tensor]) + len(operator.outputs)
        for kernel in operator.kernels:
            if isinstance(kernel, Kernel) and limit == "max_bindings":
                assert tensors - len(kernel.unused) - len(kernel.in_place) <= 8
            elif isinstance(kernel, Kernel):
                threads = kernel.constants.get("THREADS", 1)
                asks = "max_threads" in kernel.condition.names
                assert isinstance(threads, str) or threads <= 256 or asks


def test_plan_prints_its_steps(sketch: Any) -> None:
    """A plan is plain data, and reads as a list of dispatches."""
    codes = sketch.quantize(sketch.input("float32", 1, 3, 4, 4))
    text = str(make_plan(sketch.graph(sketch.dequantize(codes)), SMALLEST))
    assert text.startswith("plan sketch: 2 steps, ")
    assert "quantized_decomposed.quantize_per_tensor.default quantize" in text
    assert "host quantized" in str(
        make_plan(sketch.graph(sketch.dequantize(codes)), replace(SMALLEST, kernels=False))
    )


def test_other_constants_are_another_structure(new_sketch: Any) -> None:
    """Two plans that differ in a constant's content are not one with other parameters."""

    def plan(content: float) -> Any:
        drawing = new_sketch()
        x = drawing.input("float32", 3)
        y = drawing.call("aten.add.Tensor", x=x, other=drawing.constant(np.full(3, content, "f4")))
        return make_plan(drawing.graph(y), SMALLEST)

    assert plan(1.0).same_structure(plan(1.0))
    assert not plan(1.0).same_structure(plan(2.0))
