"""What calls gave in a run, also where their buffers hold something else after it."""

from __future__ import annotations

import numpy as np
import pytest

from nybble.devices import Device
from nybble.graph import Graph, GraphBuilder
from nybble.tracing import trace_graph
from nybble.verify import verify_method

BEFORE = np.arange(12, dtype=np.float32).reshape(2, 6)
ADDED = np.full((2, 6), 5, np.float32)


def _viewed_state() -> Graph:
    """Views of a state are read, and the run replaces its content."""
    b = GraphBuilder("viewed_state")
    state = b.state("total", BEFORE)
    x = b.input("x", "float32", (2, 6))
    view = b.call("aten.view_copy.default", x=state, size=(3, 4))
    again = b.call("aten.view_copy.default", x=view, size=(12,))
    minus = b.call("aten.neg.default", x=again)
    b.update(state, b.call("aten.add.Tensor", x=state, other=x))
    return b.finish([minus])


@pytest.mark.device
def test_views_of_a_state_are_those_of_its_first_content(device: Device) -> None:
    """A view gives what the state held when the call ran, not what the run left in it."""
    graph = _viewed_state()
    trace = trace_graph(device, graph, [ADDED])
    view, again, minus, _ = (call.outputs[0] for call in graph.calls)

    np.testing.assert_array_equal(BEFORE.reshape(3, 4), trace.values[view])
    np.testing.assert_array_equal(BEFORE.reshape(12), trace.values[again])
    np.testing.assert_array_equal(-BEFORE.reshape(12), trace.values[minus])
    report = verify_method(device, graph, graph, [ADDED])
    assert report, report.summary
