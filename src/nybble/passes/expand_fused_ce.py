"""Turns the fused cross entropy into calls that each fill a whole device.

does            fused_ce becomes cross_entropy, weighted by 1 / n_valid, and a sum of its rows
needs           nothing
does not handle anything else
before -> after loss, d = fused_ce(x, labels, n)
                ->  rows, d = cross_entropy(x, labels, const 1 / n); loss = sum(rows)
"""

from __future__ import annotations

from itertools import count

import numpy as np

from nybble.contract import FLOAT32, REGISTRY
from nybble.graph import Call, Graph, Value, make_call

__all__ = ["expand_fused_ce"]

FUSED = "et_vk.fused_ce.default"


def expand_fused_ce(graph: Graph) -> Graph:
    """The graph without fused cross entropies."""
    replacements: dict[Value, Value] = {}
    calls: list[Call] = []
    for call in graph.calls:
        if call.operator.name != FUSED:
            calls.append(call)
            continue
        new = _expanded(call)
        calls += new
        loss, slopes = call.outputs
        replacements[loss] = new[1].outputs[0]
        replacements[slopes] = new[0].outputs[1]
    return graph.with_calls(calls).substitute(replacements)


def _expanded(call: Call) -> list[Call]:
    numbers = count()

    def fresh() -> str:
        return f"{call.outputs[0].name}_{next(numbers)}"

    share = np.asarray(1.0 / call.arguments["n_valid"], np.float32)
    rows = make_call(
        REGISTRY["nybble.cross_entropy.default"],
        {**call.inputs, "weight": Value(fresh(), FLOAT32, (), share)},
        fresh,
        call.origin,
    )
    total = make_call(REGISTRY["aten.sum.dim_IntList"], {"x": rows.outputs[0]}, fresh, call.origin)
    return [rows, total]
