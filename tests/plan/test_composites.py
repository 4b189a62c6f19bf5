"""Several calls in place of one: chosen by the device, checked as the one that they stand for."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.plan.composite_operator import TWICE, declare_twice, declared, twice_graph  # noqa: F401

from nybble.contract import REGISTRY, Array, Composite, Emit, Float32, op
from nybble.errors import ContractError
from nybble.graph import Graph, GraphBuilder
from nybble.plan import Capabilities, Dispatch, make_plan
from nybble.plan.choose import choose_kernels, precision_of, viable_kernels, why_on_host

UNITS = Capabilities(max_workgroup_bytes=49152, matrix_units=("i8xi8->i32 16x16x32",))
_RNG = np.random.default_rng(0)


def _linear(b: GraphBuilder, x: Any, n: int, k: int) -> Any:
    return b.call(
        "et_vk.linear_q4gsw.default",
        x=x,
        weight=_RNG.integers(0, 256, (n, k // 2), dtype=np.uint8),
        scales=_RNG.uniform(0.01, 0.1, (k // 32, n)).astype(np.float32),
        group_size=32,
        bias=None,
    )


def _two_layers(rows: int = 64, n: int = 1024, k: int = 1024) -> Graph:
    """Two layers that read one input."""
    b = GraphBuilder("two")
    x = b.input("x", "float32", (rows, k))
    return b.finish([_linear(b, x, n, k), _linear(b, x, n, k)])


def _names(graph: Graph, device: Capabilities) -> list[str]:
    return [step.label.split(" ")[1] for step in make_plan(graph, device).steps]


def test_a_large_product_becomes_three_calls_that_share_the_prepared_input() -> None:
    """On int8 matrix units the input of two layers is prepared once."""
    assert [
        "fixed_point", "fixed_product", "fixed_sum", "fixed_product", "fixed_sum",
    ] == _names(_two_layers(), UNITS)  # fmt: skip


@pytest.mark.parametrize(
    "device",
    [
        replace(UNITS, matrix_units=()),
        replace(UNITS, precision="float32"),
        replace(UNITS, max_workgroup_bytes=28672),
    ],
)
def test_without_what_it_needs_the_call_stays_one(device: Capabilities) -> None:
    """No matrix units, float32's precision asked for, or too little workgroup memory."""
    assert ["tiled", "tiled"] == _names(_two_layers(), device)


@pytest.mark.parametrize("rows", [64, 128])
def test_the_product_asks_for_the_memory_that_its_shader_has(rows: int) -> None:
    """One byte less of workgroup memory than the shader declares, and the tile is not taken."""
    size = {"vec4<u32>": 16, "u32": 4, "f32": 4}
    step = make_plan(_two_layers(rows), UNITS).steps[1]
    assert isinstance(step, Dispatch)
    arrays = re.findall(r"var<workgroup> \w+: array<([\w<>]+), (\d+)>;", step.shader)
    needed = sum(size[element] * int(count) for element, count in arrays)

    taken = make_plan(_two_layers(rows), replace(UNITS, max_workgroup_bytes=needed)).steps[1]
    other = make_plan(_two_layers(rows), replace(UNITS, max_workgroup_bytes=needed - 1)).steps[1]
    assert isinstance(taken, Dispatch)
    assert isinstance(other, Dispatch)
    assert step.shader == taken.shader != other.shader


def test_parts_that_do_not_fit_the_device_are_not_made() -> None:
    """A composite whose parts could run on the host alone is no choice."""
    graph = _two_layers()
    parts = 64 * 1024 * 4 * 4
    device = replace(UNITS, max_binding=parts - 4)

    assert "fixed_point" not in _names(graph, device)
    assert "fixed_point" in _names(graph, replace(UNITS, max_binding=parts))


def test_results_are_the_values_that_the_call_made() -> None:
    """The last part makes the call's own result; every part names the call that it is of."""
    graph = _two_layers()
    choices = choose_kernels(graph, UNITS).choices

    made = {choice.call.outputs[0]: choice.call for choice in choices}
    for call in graph.calls:
        assert made[call.outputs[0]].source is call
    assert all(choice.call.source in graph.calls for choice in choices)


def test_precision_of_a_composite_is_its_own() -> None:
    """What compares results learns that fixed point is as close as float16."""
    call = _two_layers().calls[0]

    assert "float16" == precision_of(call, UNITS)
    assert "float32" == precision_of(call, Capabilities())


def test_splits_fill_the_processors_and_divide_the_depth() -> None:
    """Few tiles are cut along the depth, in equal parts; many are not."""

    def splits(rows: int, n: int, k: int) -> tuple[int, int]:
        plan = make_plan(_two_layers(rows, n, k), UNITS)
        step = plan.steps[1]
        assert isinstance(step, Dispatch)
        return plan.calls[step.call].arguments["splits"], step.grid[0]

    assert (2, 128) == splits(128, 8192, 2048)
    assert (1, 128) == splits(2048, 1024, 1024)
    assert (4, 32) == splits(64, 1024, 1024)
    assert (1, 8) == splits(64, 1024, 1088)


def _twice_a_negation() -> Graph:
    b = GraphBuilder("negation")
    minus = b.call("aten.neg.default", x=b.input("x", "float32", (5, 3)))
    return b.finish([b.call("test.twice.default", x=minus)])


@pytest.mark.usefixtures("declared")
def test_a_composite_must_make_the_result_last() -> None:
    """An expansion whose result is not its last call's, or has another shape, is refused."""

    def early(emit: Emit, x: Any) -> Any:
        result = emit("aten.mul.Scalar", x=x, other=2.0)
        emit("aten.mul.Scalar", x=x, other=3.0)
        return result

    for expand in (early, lambda emit, x: x):
        declare_twice(expand)
        with pytest.raises(ValueError, match="its last call must make the result"):
            make_plan(_twice_a_negation(), Capabilities())
        REGISTRY.pop("test.twice.default")
    declare_twice(lambda emit, x: emit("aten.view_copy.default", x=x, size=(15,)))
    with pytest.raises(ValueError, match="where .* is to be made"):
        make_plan(twice_graph(), Capabilities())


@pytest.mark.usefixtures("declared")
def test_a_condition_may_not_read_what_the_call_has_not() -> None:
    """As with kernels, a wrong name shows where the operator is declared."""
    with pytest.raises(ValueError, match="added, when: expression 'depth > 1' reads depth"):

        @op(
            "test.twice.default",
            out=Float32[Array, "*shape"],
            kernels=[Composite("added", lambda emit, x: x, when="depth > 1")],
        )
        def twice(x: Float32[Array, "*shape"]) -> Array:
            """Two times x."""
            return x + x


def test_why_a_composite_does_not_run_is_told() -> None:
    """The reasons of a call on the host name the composite's part."""
    graph = _two_layers()
    told = why_on_host(graph.calls[0], replace(UNITS, max_binding=16))

    assert "its part nybble.fixed_point.default cannot run" in told
    assert [] == viable_kernels(graph.calls[0], replace(UNITS, max_binding=16))


def test_parts_are_checked_like_any_call() -> None:
    """A split that does not divide the blocks is refused by the part's own rule."""
    b = GraphBuilder("parts")
    limbs = b.input("limbs", "int8", (4, 3, 2, 32))
    x_scales = b.input("x_scales", "float32", (3, 4))
    with pytest.raises(ContractError, match="the same number of steps"):
        b.call(
            "nybble.linear_fixed_q4.default",
            x=limbs,
            x_scales=x_scales,
            weight=np.zeros((4, 48), np.uint8),
            scales=np.ones((3, 4), np.float32),
            group_size=32,
            splits=1,
            high_first=False,
        )


@pytest.mark.usefixtures("declared")
def test_a_result_that_another_call_prepared_is_made_anew() -> None:
    """Where all parts of a call are parts of an earlier one, its result is still its own."""

    def two(emit: Emit, x: Any) -> Any:
        return emit("aten.neg.default", x=emit("aten.abs.default", x=x))

    def one(emit: Emit, x: Any) -> Any:
        return emit("aten.abs.default", x=x)

    declare_twice(two)
    b = GraphBuilder("shared")
    x = b.input("x", "float32", (5, 3))
    first = b.call("test.twice.default", x=x)
    REGISTRY.pop("test.twice.default")
    declare_twice(one)
    graph = b.finish([first, b.call("test.twice.default", x=x)])
    calls = [choice.call for choice in choose_kernels(graph, Capabilities()).choices]

    assert ["aten.abs.default", "aten.neg.default", "aten.abs.default"] == [
        call.operator.name for call in calls
    ]
    assert [call.outputs for call in graph.calls] == [call.outputs for call in calls[1:]]
    assert [graph.calls[0]] * 2 + [graph.calls[1]] == [call.source for call in calls]


@pytest.mark.usefixtures("declared")
def test_a_part_may_have_no_composite_itself() -> None:
    """Parts are expanded once; one that would stay unexpanded is refused."""
    declare_twice(lambda emit, x: emit("test.twice.default", x=emit("aten.abs.default", x=x)))
    with pytest.raises(ValueError, match="its part test.twice.default has a composite itself"):
        make_plan(twice_graph(), Capabilities())
