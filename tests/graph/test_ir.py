from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nybble.contract import FLOAT32, INT8, REGISTRY
from nybble.errors import ContractError
from nybble.graph import Graph, TensorSpec, Value, format_graph, nbytes, single_call, verify_graph


def chain(sketch: Any) -> Graph:
    """input -> quantize -> dequantize -> two readers."""
    x = sketch.input("float32", 2, 3)
    values = sketch.dequantize(sketch.quantize(x, 0.1, 3), 0.1, 3)
    graph: Graph = sketch.graph(sketch.call("aten.add.Tensor", x=values, other=values), values)
    return graph


def test_graph_prints_like_compiler_ir(sketch: Any) -> None:
    """One line a call: results with their types, operator, arguments by name."""
    assert """\
method sketch(%input_0: float32[2, 3]) {
  %0: int8[2, 3] = quantized_decomposed.quantize_per_tensor.default(x=%input_0, scale=0.1, \
zero_point=3, quant_min=-128, quant_max=127)
  %1: float32[2, 3] = quantized_decomposed.dequantize_per_tensor.default(x=%0, scale=0.1, \
zero_point=3, quant_min=-128, quant_max=127)
  %2: float32[2, 3] = aten.add.Tensor(x=%1, other=%1, alpha=1)
  return %2, %1
}""" == format_graph(chain(sketch))


def test_printing_leaves_out_what_says_nothing(sketch: Any) -> None:
    """Ignored arguments and internal ones at their default are not shown; others are."""
    x = sketch.input("int8", 1, 3, 2, 2)
    text = format_graph(sketch.graph(sketch.convolve(x, 4), sketch.convolve(x, 4, code_min=0)))
    first, second = text.splitlines()[1:3]
    assert "code_min" not in first
    assert second.endswith("activation='none', code_min=0)")
    assert "weight=const int8[4, 4]" in first
    assert "kernel=[1, 1]" in first
    assert "bias=None" in first


def test_users_and_producers(sketch: Any) -> None:
    """A call that reads a value twice is one user; graph inputs have no producer."""
    graph = chain(sketch)
    add = graph.calls[2]
    values = add.inputs["x"]
    assert [add] == graph.users()[values]
    assert graph.calls[1] is graph.producers()[values]
    assert graph.inputs[0] not in graph.producers()
    assert add.outputs[0] not in graph.users()


def test_substituting_follows_chains(sketch: Any) -> None:
    """A value replaced by one that is replaced itself ends at the last."""
    graph = chain(sketch)
    codes, values = graph.calls[0].outputs[0], graph.calls[1].outputs[0]
    other = Value("other", FLOAT32, (2, 3), np.zeros((2, 3), np.float32))
    middle = Value("middle", FLOAT32, (2, 3))
    changed = graph.substitute({values: middle, middle: other})
    assert {"x": other, "other": other} == changed.calls[2].inputs
    assert other is changed.outputs[1]
    assert codes is changed.calls[1].inputs["x"]
    assert graph is graph.substitute({})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda g: replace(g, calls=g.calls[1:]),
            "after x: .* argument 'x' \\(%0\\) is not defined",
        ),
        (lambda g: replace(g, calls=g.calls[::-1]), "argument 'x' \\(%1\\) is not defined"),
        (lambda g: replace(g, calls=g.calls + g.calls[:1]), "%0 is defined twice"),
        (lambda g: replace(g, calls=g.calls[:2]), "result %2 is not defined"),
        (lambda g: replace(g, input_specs=()), "the specs do not match inputs and outputs"),
        (
            lambda g: replace(
                g,
                calls=(
                    replace(g.calls[0], outputs=(Value("0", FLOAT32, (2, 3)),)),
                    *g.calls[1:],
                ),
            ),
            "%0 is float32\\[2, 3\\], expected int8\\[2, 3\\]",
        ),
    ],
)
def test_grammar_of_graphs(sketch: Any, damage: Any, message: str) -> None:
    """Undefined, doubly defined and mistyped values are caught, with stage and call."""
    graph = chain(sketch)
    verify_graph(graph, "x")
    with pytest.raises(AssertionError, match=message):
        verify_graph(damage(graph), "x")


def test_sizes_and_specs() -> None:
    """Bytes of elements, not of words; specs print as users read them."""
    assert 6 == nbytes(Value("v", INT8, (2, 3)))
    assert 24 == nbytes(Value("v", FLOAT32, (2, 3)))
    assert 4 == nbytes(Value("v", FLOAT32, ()))
    assert "x: int64[2, 3]" == str(TensorSpec("x", "int64", (2, 3)))


def test_single_call_feeds_what_is_no_constant() -> None:
    """Arrays become inputs in order, or constants where named; attributes stay attributes."""
    weight, x = np.ones((2, 3), np.float32), np.zeros((4, 3), np.float32)
    graph, fed = single_call(
        REGISTRY["aten.linear.default"], {"x": x, "weight": weight, "bias": None}, ["weight"]
    )
    assert ["x"] == [value.name for value in graph.inputs]
    assert fed[0] is x
    assert weight is graph.calls[0].inputs["weight"].constant
    assert "out: float32[4, 2]" == str(graph.output_specs[0])


def test_single_call_refuses_unknown_types() -> None:
    """An array of a type that nybble does not have is named."""
    with pytest.raises(ContractError, match="'x' has no supported type: complex64"):
        single_call(REGISTRY["aten.neg.default"], {"x": np.zeros(3, np.complex64)})
