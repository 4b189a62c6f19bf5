"""Caches of keys and values that stay on the device between runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nybble.contract import Array
from nybble.devices import devices, open_device
from nybble.graph import GraphBuilder
from nybble.plan import make_plan
from nybble.testing import compare

DEVICES = [
    pytest.param(info.name, marks=() if info.name == "host" else pytest.mark.device)
    for info in devices()
]
_ROWS, _HEADS, _SIZE = 7, 2, 5


def _floats(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)


def _step(start: int) -> Any:
    """One step of attention at a position, which writes its row of both caches."""
    builder = GraphBuilder(f"step_{start}")
    shape = (1, 1, _HEADS, _SIZE)
    q, k, v = (builder.input(name, "float32", shape) for name in ("q", "k", "v"))
    empty = np.full((1, _ROWS, _HEADS, _SIZE), np.nan, np.float32)
    caches = [builder.state(name, empty) for name in ("keys", "values")]
    results = builder.call(
        "sdpa_with_kv_cache.default",
        q=q, k=k, v=v, k_cache=caches[0], v_cache=caches[1], start_pos=start, causal=True,
    )  # fmt: skip
    for state, content in zip(caches, results[1:], strict=True):
        builder.update(state, content)
    return builder.finish([results[0]])


def _whole(q: Array, k: Array, v: Array) -> Array:
    """The last query's attention to all keys, [rows, heads, size], in double."""
    scores = np.einsum("hd,lhd->hl", q[-1].astype(np.float64), k) / np.sqrt(_SIZE)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hl,lhd->hd", weights / weights.sum(-1, keepdims=True), v).astype(np.float32)


@pytest.mark.parametrize("name", DEVICES)
def test_steps_share_the_caches(name: str) -> None:
    """Each step sees the rows of those before it; rows not yet written, NaN here, are not read."""
    device = open_device(name)
    states = device.new_states()
    q, k, v = (_floats(seed, _ROWS, _HEADS, _SIZE) for seed in (1, 2, 3))
    try:
        for row in range(_ROWS):
            graph = _step(row)
            plan = make_plan(graph, device.capabilities, state_layouts=states.layouts())
            executable = device.prepare(plan, states)
            (out,) = executable.run([x[None, row : row + 1] for x in (q, k, v)])
            executable.close()
            seen = slice(0, row + 1)
            assert None is compare(_whole(q[seen], k[seen], v[seen]), out[0, 0], exact=False)
        np.testing.assert_array_equal(k[None], states.read("keys"))
        np.testing.assert_array_equal(v[None], states.read("values"))
    finally:
        states.close()
