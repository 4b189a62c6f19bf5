"""Each pass by the printed graph before and after, and by what it must leave alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nybble.errors import ContractError
from nybble.graph import Graph, format_graph
from nybble.passes import PIPELINE, run_passes
from nybble.passes.drop_dead_calls import drop_dead_calls
from nybble.passes.drop_identities import drop_identities
from nybble.passes.fold_activation import fold_activation
from nybble.passes.fold_constants import fold_constants
from nybble.passes.fold_prepack import fold_prepack


def body(graph: Graph) -> list[str]:
    """The printed calls and the return, without operator namespaces and overloads."""
    return [line.strip() for line in format_graph(graph).splitlines()[1:-1]]


def test_prepack_is_its_constant(sketch: Any) -> None:
    """fold_prepack: a use of the packed constant uses the constant."""
    x = sketch.input("float32", 3)
    weight = sketch.constant(np.ones(3, np.float32))
    packed = sketch.call("et_vk.prepack.default", x=weight)
    graph = sketch.graph(sketch.call("aten.mul.Tensor", x=x, other=packed))
    assert [
        "%1: float32[3] = et_vk.prepack.default(x=const float32[3])",
        "%2: float32[3] = aten.mul.Tensor(x=%input_0, other=%1)",
        "return %2",
    ] == body(graph)
    assert [
        "%2: float32[3] = aten.mul.Tensor(x=%input_0, other=const float32[3])",
        "return %2",
    ] == body(fold_prepack(graph))


def test_returned_prepack_returns_the_constant(sketch: Any) -> None:
    """fold_prepack: outputs are replaced like arguments."""
    sketch.input("float32", 3)
    packed = sketch.call("et_vk.prepack.default", x=sketch.constant(np.ones(3, np.float32)))
    assert ["return const float32[3]"] == body(fold_prepack(sketch.graph(packed)))


def test_calls_on_constants_are_computed(sketch: Any) -> None:
    """fold_constants: a chain of calls on constants becomes one constant, the reference's value."""
    x = sketch.input("float32", 3)
    codes = sketch.constant(np.array([1, 2, 3], np.int8))
    values = sketch.call("aten.neg.default", x=sketch.dequantize(codes, 0.5, 1))
    graph = sketch.graph(sketch.call("aten.mul.Tensor", x=x, other=values), values)
    after = fold_constants(graph)
    assert [
        "%3: float32[3] = aten.mul.Tensor(x=%input_0, other=const float32[3])",
        "return %3, const float32[3]",
    ] == body(after)
    np.testing.assert_array_equal(
        np.array([-0.0, -0.5, -1.0], np.float32), after.outputs[1].constant
    )


def test_large_results_stay_calls(sketch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """fold_constants: what would fill memory at load is left to the device."""
    import sys

    sketch.input("float32", 3)
    values = sketch.dequantize(sketch.constant(np.zeros(16, np.int8)))
    graph = sketch.graph(values)
    monkeypatch.setattr(sys.modules[fold_constants.__module__], "LARGEST", 63)
    assert body(graph) == body(fold_constants(graph))
    monkeypatch.setattr(sys.modules[fold_constants.__module__], "LARGEST", 64)
    assert ["return const float32[16]"] == body(fold_constants(graph))


def test_copies_that_keep_the_type_are_dropped(sketch: Any) -> None:
    """drop_identities: clones and copies of dimension order vanish, through any number of them."""
    x = sketch.input("float32", 2, 3)
    one = sketch.call("aten.clone.default", x=x)
    two = sketch.call("dim_order_ops._clone_dim_order.default", x=one)
    three = sketch.call("aten.view_copy.default", x=two, size=(2, 3))
    graph = sketch.graph(sketch.call("aten.neg.default", x=three), two)
    assert [
        "%3: float32[2, 3] = aten.neg.default(x=%input_0)",
        "return %3, %input_0",
    ] == body(drop_identities(graph))


def test_copies_that_change_something_stay(sketch: Any) -> None:
    """drop_identities: another shape or element type is no identity."""
    x = sketch.input("float32", 2, 3)
    view = sketch.call("aten.view_copy.default", x=x, size=(3, 2))
    cast = sketch.call("dim_order_ops._to_dim_order_copy.default", x=view, out_dtype="int32")
    graph = sketch.graph(cast)
    assert body(graph) == body(drop_identities(graph))


def test_relu_becomes_a_lower_bound(sketch: Any) -> None:
    """fold_activation: a fused relu is a bound at the zero point."""
    out = sketch.convolve(
        sketch.input("int8", 1, 3, 2, 2), 4, zero_point_out=-20, activation="relu"
    )
    before, after = sketch.graph(out), fold_activation(sketch.graph(out))
    assert "activation='relu'" in body(before)[0]
    assert "activation='none', code_min=-20)" in body(after)[0]


def test_bound_above_the_zero_point_stays(sketch: Any) -> None:
    """fold_activation: a range that begins above the zero point, or ends below it, is kept."""
    x = sketch.input("int8", 1, 3, 2, 2)
    for code_min, code_max, expected in ((10, 20, (10, 20)), (-90, -50, (-50, -50))):
        out = sketch.convolve(
            x, 4, zero_point_out=-20, activation="relu", code_min=code_min, code_max=code_max
        )
        call = fold_activation(sketch.graph(out)).calls[-1]
        assert expected == (call.arguments["code_min"], call.arguments["code_max"])


def test_other_activations_stay(sketch: Any) -> None:
    """fold_activation: without relu nothing changes."""
    graph = sketch.graph(sketch.convolve(sketch.input("int8", 1, 3, 2, 2), 4))
    assert body(graph) == body(fold_activation(graph))


def test_unread_calls_are_dropped(sketch: Any) -> None:
    """drop_dead_calls: what no output needs goes, with what only that needed."""
    x = sketch.input("float32", 3)
    dead = sketch.call("aten.neg.default", x=x)
    sketch.call("aten.relu.default", x=dead)
    graph = sketch.graph(sketch.call("aten.abs.default", x=x))
    assert ["%2: float32[3] = aten.abs.default(x=%input_0)", "return %2"] == body(
        drop_dead_calls(graph)
    )


def test_broken_graph_is_caught_at_the_seam(sketch: Any) -> None:
    """A pass that leaves an undefined value is named, before anything is planned."""
    x = sketch.input("float32", 3)
    one = sketch.call("aten.neg.default", x=x)
    graph = sketch.graph(sketch.call("aten.abs.default", x=one))

    def forget_first_call(graph: Graph) -> Graph:
        return graph.with_calls(graph.calls[1:])

    with pytest.raises(AssertionError, match=r"after forget_first_call: aten.abs.default \(call"):
        run_passes(graph, (forget_first_call,))


@pytest.mark.parametrize("apply", PIPELINE, ids=lambda p: p.__name__)
def test_pass_says_what_it_does(apply: Callable[[Graph], Graph]) -> None:
    """A pass's file says what it does, needs and does not handle, and shows before and after."""
    import sys

    text = sys.modules[apply.__module__].__doc__ or ""
    for heading in ("does ", "needs ", "does not handle ", "before -> after "):
        assert f"\n{heading}" in text


def test_replacing_an_argument_is_checked_again(sketch: Any) -> None:
    """A pass cannot make a call that breaks its contract."""
    out = sketch.convolve(sketch.input("int8", 1, 3, 2, 2), 4)
    call = sketch.graph(out).calls[0]
    with pytest.raises(ContractError, match="the code range must lie within int8"):
        call.replaced(code_min=5, code_max=4)
