"""Graphs built in Python."""

from __future__ import annotations

import numpy as np
import pytest

import nybble.ops  # noqa: F401  (declares the operators)
from nybble.contract import Array
from nybble.devices import HostDevice
from nybble.errors import ContractError, UnsupportedProgramError
from nybble.graph import Graph, GraphBuilder
from nybble.plan import make_plan


def run(graph: Graph, *inputs: Array) -> list[Array]:
    """A graph's outputs on the host."""
    host = HostDevice()
    return host.prepare(make_plan(graph, host.capabilities)).run(inputs)


def test_built_graph_computes_what_was_written() -> None:
    """Inputs, numbers, arrays and chains of calls mean what they say."""
    b = GraphBuilder("affine")
    x = b.input("x", "float32", (2, 3))
    y = b.math.add(b.math.mul(x, 2.0), b.constant(np.arange(3, dtype=np.float32)))
    graph = b.finish({"y": y, "mean": b.math.mean(y)})
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    expected = 2 * data + np.arange(3)
    actual, mean = run(graph, data)
    np.testing.assert_array_equal(expected, actual)
    assert expected.mean() == mean
    assert ["y", "mean"] == [spec.name for spec in graph.output_specs]


def test_states_persist_between_runs() -> None:
    """A state that is updated holds the new content in the next run."""
    b = GraphBuilder("count")
    state = b.state("total", np.zeros(2, np.float32))
    total = b.math.add(state, b.input("x", "float32", (2,)))
    b.update(state, total)
    graph = b.finish([total])
    host = HostDevice()
    executable = host.prepare(make_plan(graph, host.capabilities))
    x = np.array([1, 2], np.float32)
    results = [executable.run([x])[0] for _ in range(3)]
    np.testing.assert_array_equal([[1, 2], [2, 4], [3, 6]], results)


def test_operators_that_stand_for_others_can_be_called() -> None:
    """A list of tensors is joined, though no single operator takes it."""
    b = GraphBuilder()
    parts = [b.input(f"x{i}", "float32", (2, i + 1)) for i in range(3)]
    joined = b.call("aten.cat.default", tensors=parts, dim=1)
    arrays = [np.full((2, i + 1), i, np.float32) for i in range(3)]
    np.testing.assert_array_equal(np.concatenate(arrays, 1), run(b.finish([joined]), *arrays)[0])


def test_loss_operator_of_the_exporter_can_be_called() -> None:
    """The fused cross entropy gives the mean over the rows that count, and its gradient."""
    b = GraphBuilder()
    logits = np.array([[1, 2, 3], [0, 5, 0], [9, 9, 9]], np.float32)
    labels = np.array([2, 0, -1], np.int32)
    loss, slopes = b.call(
        "et_vk.fused_ce.default", logits=b.input("x", "float32", (3, 3)), labels=b.constant(labels),
        n_valid=2.0,
    )  # fmt: skip
    exponentials = np.exp(logits.astype(np.float64))
    shares = exponentials / exponentials.sum(1, keepdims=True)
    actual, d_logits = run(b.finish([loss, slopes]), logits)
    assert -(np.log(shares[0, 2]) + np.log(shares[1, 0])) / 2 == pytest.approx(float(actual))
    shares[0, 2] -= 1
    shares[1, 0] -= 1
    shares[2] = 0
    np.testing.assert_allclose(shares / 2, d_logits, rtol=1e-5, atol=1e-7)


def test_included_calls_are_repeated_on_other_values() -> None:
    """A graph's calls work in another graph, on the values given for its own."""
    inner = GraphBuilder("inner")
    x = inner.input("x", "float32", (3,))
    graph = inner.finish([inner.math.square(x)])
    outer = GraphBuilder("outer")
    z = outer.input("z", "float32", (3,))
    values = outer.include(graph.calls, {graph.inputs[0]: outer.math.add(z, 1.0)})
    data = np.array([1, 2, 3], np.float32)
    (actual,) = run(outer.finish([values[graph.outputs[0]]]), data)
    np.testing.assert_array_equal((data + 1) ** 2, actual)


def test_mistakes_are_sentences() -> None:
    """Unknown operators, arguments and types, and states that do not fit."""
    b = GraphBuilder()
    x = b.input("x", "float32", (3,))
    state = b.state("s", np.zeros(3, np.float32))
    with pytest.raises(UnsupportedProgramError, match="aten.nothing is not an operator"):
        b.call("aten.nothing", x=x)
    with pytest.raises(ContractError, match="it has no argument 'y'"):
        b.call("aten.neg.default", y=x)
    with pytest.raises(ContractError, match="it has no argument 'x'"):
        b.call("aten.cat.default", x=x)
    with pytest.raises(ContractError, match="'float33' is no element type"):
        b.input("y", "float33", (3,))
    with pytest.raises(ContractError, match="a constant of complex128"):
        b.constant(np.zeros(3, complex))
    with pytest.raises(ContractError, match="there is a state 's' already"):
        b.state("s", np.zeros(3, np.float32))
    for dtype in (np.float16, np.int64, complex):
        with pytest.raises(ContractError, match="state 't': no operator takes .*; a state holds"):
            b.state("t", np.zeros(3, dtype))
    with pytest.raises(ContractError, match="is no state of this graph"):
        b.update(x, x)
    with pytest.raises(ContractError, match="it cannot hold"):
        b.update(state, b.input("z", "float32", (2,)))
