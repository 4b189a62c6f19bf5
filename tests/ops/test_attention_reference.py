"""The references of attention and of others of et_vk against the eager operators."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nybble.testing import Case, compare, run_expected

torch = pytest.importorskip("torch")
pytest.importorskip("executorch.backends.vulkan.custom_ops_lib")
pytest.importorskip("executorch.extension.llm.custom_ops.custom_ops")

pytestmark = [pytest.mark.export]
CASES_FOLDER = Path(__file__).parents[1] / "conformance" / "cases"


def _cases(family: str) -> list[Case]:
    name = f"eager_cases_{family}"
    spec = importlib.util.spec_from_file_location(name, CASES_FOLDER / f"{family}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    cases: list[Case] = module.CASES
    return cases


def _tensors(case: Case) -> dict[str, Any]:
    return {
        name: torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value
        for name, value in case.arguments.items()
    }


def _sdpa(a: dict[str, Any]) -> Any:
    return torch.nn.functional.scaled_dot_product_attention(
        a["q"], a["k"], a["v"], a.get("mask"), scale=a.get("scale")
    )


def _cached(a: dict[str, Any]) -> Any:
    tail = (a.get("mask"), 0.0, a.get("causal", False), a.get("scale"))
    names = ("q", "k", "v", "k_cache", "v_cache", "start_pos")
    tensors = [a[n] for n in names]
    out = torch.ops.llama.sdpa_with_kv_cache(*tensors, a["q"].shape[1], *tail)
    return out, a["k_cache"], a["v_cache"]


def _custom(a: dict[str, Any]) -> Any:
    names = ("q", "k_cache", "v_cache", "start_pos")
    tail = (a.get("mask"), 0.0, a.get("causal", False), a.get("scale"))
    return torch.ops.llama.custom_sdpa(*(a[n] for n in names), *tail)


def _update(a: dict[str, Any]) -> Any:
    torch.ops.llama.update_cache(a["value"], a["cache"], a["start_pos"])
    return torch.zeros(1), a["cache"]


_EAGER = {
    "et_vk.rms_norm.default": lambda a: torch.ops.et_vk.rms_norm(a["x"], a["weight"], a["eps"]),
    "et_vk.sdpa.default": _sdpa,
    "et_vk.apply_rotary_emb.default": lambda a: torch.ops.et_vk.apply_rotary_emb(*a.values()),
    "et_vk.apply_rotary_emb_hf.default": lambda a: torch.ops.et_vk.apply_rotary_emb_hf(*a.values()),
    "et_vk.apply_rotary_emb_interleaved.default": lambda a: (
        torch.ops.et_vk.apply_rotary_emb_interleaved(*a.values())
    ),
    "et_vk.grid_priors.default": lambda a: torch.ops.et_vk.grid_priors(*a.values()),
    "sdpa_with_kv_cache.default": _cached,
    "custom_sdpa.default": _custom,
    "update_cache.default": _update,
}


def _comparable(case: Case) -> bool:
    """The eager operators take caches of one batch, angles for whole heads, three axes."""
    a = case.arguments
    if "rotary" in case.operator:
        x = a.get("xq", a.get("x"))
        if not x.size or ("interleaved" in case.operator and x.ndim != 3):
            return False
    if case.operator == "et_vk.apply_rotary_emb_hf.default":
        return bool(a["cos"].shape[1] == a["xq"].shape[3])
    if case.operator in ("sdpa_with_kv_cache.default", "custom_sdpa.default"):
        return bool(a["q"].shape[0] == 1)
    if case.operator == "update_cache.default":
        return bool(a["value"].shape[0] == 1 and a["value"].size)
    # PyTorch leaves a query that sees no key to its implementation.
    return case.id != "all_hidden"


COMPARED = [
    case
    for family in ("attention", "norm", "image")
    for case in _cases(family)
    if case.operator in _EAGER and _comparable(case)
]


@pytest.mark.parametrize("case", COMPARED, ids=[f"{i}-{c.name}" for i, c in enumerate(COMPARED)])
def test_reference_equals_the_eager_operator(case: Case) -> None:
    """The numpy reference gives the result of ExecuTorch's or PyTorch's own operator."""
    eager = _EAGER[case.operator](_tensors(case))
    results = eager if isinstance(eager, tuple) else (eager,)
    ours = run_expected(case.operator, case.arguments)
    problems = [
        compare(theirs.numpy(), mine, exact=False)
        for theirs, mine in zip(results, ours, strict=True)
    ]
    assert [None] * len(problems) == problems
