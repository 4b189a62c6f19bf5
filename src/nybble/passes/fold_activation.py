"""Turns a fused relu into a bound of the code range.

does            activation="relu" becomes code_min = max(code_min, zero point of the result)
needs           nothing. Exact: quantization is monotone and zero has the zero point's code
does not handle operators without a code range
before -> after conv(x, activation="relu")  ->  conv(x, activation="none", code_min=z)
"""

from __future__ import annotations

from nybble.graph import Call, Graph

__all__ = ["fold_activation"]


def fold_activation(graph: Graph) -> Graph:
    """The graph with relu activations folded into code ranges."""
    return graph.with_calls([_fold(call) for call in graph.calls])


def _fold(call: Call) -> Call:
    arguments = call.arguments
    if arguments.get("activation") != "relu" or "code_min" not in arguments:
        return call
    bottom = min(max(arguments["code_min"], arguments["zero_point_out"]), arguments["code_max"])
    return call.replaced(activation="none", code_min=bottom)
