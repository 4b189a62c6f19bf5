"""The references of the float and shape operators against PyTorch, on the conformance cases."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nybble.contract import REGISTRY, Operator
from nybble.testing import Case, compare, run_expected

torch = pytest.importorskip("torch")

CASES_FOLDER = Path(__file__).parents[1] / "conformance" / "cases"
FAMILIES = (
    "elementwise", "reduce", "pool", "shape", "linear", "conv2d", "norm", "softmax", "attention",
    "logic", "index", "join", "fill", "image",
)  # fmt: skip
LARGEST = float(np.finfo(np.float32).max)
pytestmark = [pytest.mark.export]


def _cases() -> list[Case]:
    cases: list[Case] = []
    for family in FAMILIES:
        spec = importlib.util.spec_from_file_location(
            f"float_cases_{family}", CASES_FOLDER / f"{family}.py"
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        cases += module.CASES
    return cases


CASES = _cases()


def _torch_value(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    return list(value) if isinstance(value, tuple) else value


def _eager(operator: Operator, arguments: dict[str, Any]) -> Any:
    """PyTorch's result, arguments in the order in which programs store them."""
    _, name, overload = operator.name.split(".")
    function = getattr(getattr(torch.ops.aten, name), overload)
    positional, named = [], {}
    for ours, theirs in zip(operator.serialized, function._schema.arguments, strict=True):
        if ours.ignored or (theirs.kwarg_only and ours.name not in arguments):
            continue
        value = _torch_value(arguments.get(ours.name, ours.default))
        if ours.name == "alpha" and value == int(value):
            value = int(value)  # PyTorch takes no float beside integer tensors
        if theirs.kwarg_only:
            named[theirs.name] = value
        else:
            positional.append(value)
    if "out_dtype" in arguments:
        named["dtype"] = getattr(torch, arguments["out_dtype"])
    return function(*positional, **named)


def _expected(case: Case) -> list[Any]:
    operator, arguments = REGISTRY[case.operator], dict(case.arguments)
    if case.operator == "et_vk.conv_with_clamp.default":
        low, high = arguments.pop("output_min"), arguments.pop("output_max")
        result = _eager(REGISTRY["aten.convolution.default"], arguments)
        result = result if low is None else torch.clamp(result, min=low)
        result = result if high is None or high > LARGEST else torch.clamp(result, max=high)
    else:
        result = _eager(operator, arguments)
    results = result if isinstance(result, tuple) else (result,)
    return [
        np.asarray(r.numpy(), np.int32) if r.dtype == torch.int64 else r.numpy() for r in results
    ]


def _comparable(case: Case) -> bool:
    """Whether PyTorch has the operator and defines its result.

    It leaves float to integer undefined outside the range; its vectorized gelu is NaN at infinity.
    """
    undefined = "edges" in case.id and case.arguments.get("out_dtype") == "int32"
    undefined |= "gelu" in case.operator and not np.isfinite(case.arguments["x"]).all()
    if case.operator == "aten.div.Tensor_mode" and case.arguments["x"].dtype == np.int32:
        undefined |= not case.arguments["other"].all()
    # Negative indices, and those outside, are nybble's to define.
    index = case.arguments.get("index")
    undefined |= isinstance(index, np.ndarray) and bool((abs(index.astype(np.int64)) > 20).any())
    theirs = case.operator.startswith("aten.") or case.operator.startswith("et_vk.conv_with_clamp")
    # PyTorch refuses a number beyond float32 where it makes a tensor of it.
    value = case.arguments.get("value")
    undefined |= isinstance(value, float) and LARGEST < abs(value) < float("inf")
    return not undefined and theirs and not case.operator.endswith("out")


COMPARED = [case for case in CASES if _comparable(case)]


@pytest.mark.parametrize("case", COMPARED, ids=[f"{i}-{c.name}" for i, c in enumerate(COMPARED)])
def test_reference_equals_pytorch(case: Case) -> None:
    """The numpy reference gives PyTorch's result for the arguments in serialized order."""
    exact = REGISTRY[case.operator].exact
    problems = [
        compare(one, other, exact=exact)
        for one, other in zip(
            _expected(case), run_expected(case.operator, case.arguments), strict=True
        )
    ]
    assert [None] * len(problems) == problems
