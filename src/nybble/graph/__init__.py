"""The IR, and what makes, prints and checks it."""

from .builder import GraphBuilder
from .ir import Call, Graph, State, TensorSpec, Value, make_call, nbytes
from .show import format_graph
from .single import call_alone, single_call
from .verify import verify_graph

__all__ = [
    "Call", "Graph", "GraphBuilder", "State", "TensorSpec", "Value", "call_alone", "format_graph",
    "make_call", "nbytes", "single_call", "verify_graph",
]  # fmt: skip
