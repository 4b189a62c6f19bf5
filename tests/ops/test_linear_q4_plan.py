"""Plans with 4-bit codes that the graph itself produces."""

from __future__ import annotations

import pytest

import nybble.ops  # noqa: F401  (declares the operators)
from nybble.graph import Graph, GraphBuilder
from nybble.plan import Capabilities, make_plan

GROUP = 16


def step(rows: int, *, out: bool = False) -> Graph:
    """Re-quantize a latent, then run the layer forwards and backwards with the new codes."""
    b = GraphBuilder()
    latent, scales = b.input("latent", "float32", (24, 64)), b.input("scales", "float32", (4, 24))
    x, d_out = b.input("x", "float32", (rows, 64)), b.input("d_out", "float32", (rows, 24))
    codes = b.call("et_vk.q4gsw_requant.default", latent=latent, scales=scales, group_size=GROUP)
    given = {"weight": codes, "scales": scales, "group_size": GROUP}
    y = b.call("et_vk.linear_q4gsw.default", x=x, bias=None, **given)
    d_x = b.call("et_vk.linear_q4gsw_backward.default", d_out=d_out, **given)
    return b.finish([y, d_x, codes] if out else [y, d_x])


@pytest.mark.parametrize("software", [True, False])
@pytest.mark.parametrize("rows", [1, 128])
def test_codes_stay_packed_between_requant_forward_and_backward(rows: int, software: bool) -> None:
    """A training step has three dispatches: no code is packed anew."""
    plan = make_plan(step(rows), Capabilities(software=software))
    names = [call.operator.name for call in plan.calls]
    assert [
        "et_vk.q4gsw_requant.default",
        "et_vk.linear_q4gsw.default",
        "et_vk.linear_q4gsw_backward.default",
    ] == names


def test_codes_become_flat_only_where_they_leave() -> None:
    """Codes that are an output are unpacked once, at the end."""
    plan = make_plan(step(8, out=True), Capabilities())
    assert ["nybble.relayout.default"] == [
        call.operator.name for call in plan.calls if "q4gsw" not in call.operator.name
    ]
