"""Results that are written over an argument, where that argument is also read as another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nybble.devices import devices, open_device
from nybble.graph import Graph, GraphBuilder, Value
from nybble.plan import Capabilities, Dispatch, make_plan
from nybble.verify import verify_method

_SHAPE = (1, 4, 2, 4)
_FED = np.random.default_rng(0).standard_normal(_SHAPE, dtype=np.float32)


def _made(b: GraphBuilder) -> Value:
    """A value that nothing but what follows reads, so that it may be overwritten."""
    made: Value = b.call("aten.neg.default", x=b.input("x", "float32", _SHAPE))
    return made


def _viewed(b: GraphBuilder, value: Value) -> Value:
    """The same words as another value."""
    flat = b.call("aten.view_copy.default", x=value, size=(32,))
    viewed: Value = b.call("aten.view_copy.default", x=flat, size=_SHAPE)
    return viewed


def _cache_of_itself(b: GraphBuilder) -> Any:
    made = _made(b)
    return b.call("update_cache.default", value=made, cache=made, start_pos=0)


def _cache_of_its_view(b: GraphBuilder) -> Any:
    made = _made(b)
    return b.call("update_cache.default", value=_viewed(b, made), cache=made, start_pos=0)


def _one_cache_for_both(b: GraphBuilder) -> Any:
    made = _made(b)
    key, value = (b.call(f"aten.{n}.default", x=b.constant(_FED[:, :1])) for n in ("abs", "exp"))
    return b.call(
        "sdpa_with_kv_cache.default", q=key, k=key, v=value, k_cache=made, v_cache=made,
        start_pos=2, seq_len=1, mask=None, dropout=0.0, causal=True, scale=None,
    )  # fmt: skip


def _step_of(b: GraphBuilder, *names: str) -> Any:
    """An optimizer's step of which ``names`` are one value."""
    made = _made(b)
    others = {n: b.call("aten.abs.default", x=made) for n in ("param", "m", "v", "grad")}
    one = b.call("aten.abs.default", x=made)
    return b.call(
        "et_vk.adamw_step.default", **{**others, **dict.fromkeys(names, one)}, lr=0.1, beta1=0.9,
        beta2=0.999, eps=1e-8, weight_decay=0.01, bias_correction1=0.1, bias_correction2=0.1,
    )  # fmt: skip


GRAPHS: dict[str, Callable[[GraphBuilder], Any]] = {
    "a cache of itself": _cache_of_itself,
    "a cache of its view": _cache_of_its_view,
    "one cache for both": _one_cache_for_both,
    "moments alike": lambda b: _step_of(b, "m", "v"),
    "a parameter that is its gradient": lambda b: _step_of(b, "param", "grad"),
    "moments alike, unread": lambda b: _step_of(b, "m", "v")[0],
    "all alike": lambda b: _step_of(b, "param", "m", "v", "grad"),
}


def _graph(name: str) -> Graph:
    b = GraphBuilder()
    results = GRAPHS[name](b)
    return b.finish(results if isinstance(results, tuple) else [results])


@pytest.mark.parametrize("name", GRAPHS)
def test_no_dispatch_reads_what_it_writes(name: str) -> None:
    """A buffer that a dispatch writes is bound once: APIs refuse, or race over, all else."""
    plan = make_plan(_graph(name), Capabilities())
    for step in plan.steps:
        if isinstance(step, Dispatch):
            writes = [region.buffer for region in step.writes]
            assert len(writes) == len(set(writes)), step.label
            assert set() == set(writes) & {region.buffer for region in step.reads}, step.label


@pytest.mark.device
@pytest.mark.parametrize("device", [info.name for info in devices() if info.name != "host"])
@pytest.mark.parametrize("name", GRAPHS)
def test_results_equal_the_reference(device: str, name: str) -> None:
    """Every device gives what the reference gives, with shared buffers and without."""
    graph = _graph(name)
    report = verify_method(open_device(device), graph, graph, [_FED])
    assert report, report.summary
