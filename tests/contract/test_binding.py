from __future__ import annotations

import math
from typing import Any, Literal

import pytest

from nybble.contract import (
    FLOAT32,
    INT8,
    INT32,
    AnyTensor,
    Array,
    Float32,
    Int8,
    Operator,
    TensorType,
    bind,
    bind_serialized,
    rule,
)
from nybble.errors import ContractError

Image = Int8[Array, "n ic h w"]
Weight = Int8[Array, "oc ic 3"]
Bias = Float32[Array, "oc"]
Any_ = AnyTensor[Array, "*lead width"]
Free = AnyTensor[Array, "..."]


def _reference(
    x: Image,
    weight: Weight,
    scale: float,
    bias: Bias | None = None,
    dims: tuple[int, ...] = (),
    flag: bool = False,
    mode: Literal["none", "relu"] = "none",
    note: str | None = None,
    unused: None = None,
    *,
    code_min: int = -128,
) -> Any:
    raise NotImplementedError


@pytest.fixture
def sample(declare: Any) -> Operator:
    """An operator with every kind of argument."""
    operator: Operator = declare(
        _reference,
        out=Int8[Array, "n oc h_out w"],
        derived={"h_out": "h // 2"},
        rules=[rule("h % 2 == 0", "h must be even")],
    )
    return operator


X = TensorType(INT8, (2, 4, 6, 5))
W = TensorType(INT8, (8, 4, 3))
GOOD: dict[str, Any] = {"x": X, "weight": W, "scale": 0.5}


def error(operator: Operator, **changes: Any) -> list[str]:
    """The lines of the error that changed arguments give."""
    with pytest.raises(ContractError) as caught:
        bind(operator, {**GOOD, **changes})
    return str(caught.value).splitlines()


def test_axes_attributes_and_results_are_named(sample: Operator) -> None:
    """Binding gives axes, derived axes, attributes, shapes, element types and the result."""
    call = bind(sample, GOOD)
    expected = {
        "n": 2, "ic": 4, "h": 6, "w": 5, "oc": 8, "h_out": 3,
        "x": (2, 4, 6, 5), "x_dtype": "int8", "bias": None, "bias_dtype": None,
        "scale": 0.5, "dims": (), "flag": False, "mode": "none", "code_min": -128,
        "out": (2, 8, 3, 5), "count": 240,
    }  # fmt: skip
    assert expected == {name: call.names[name] for name in expected}
    assert (TensorType(INT8, (2, 8, 3, 5)),) == call.outputs
    assert ["x", "weight"] == list(call.tensors)
    assert None is call.attributes["unused"]


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        (
            {"x": TensorType(INT8, (2, 4, 6))},
            [
                "test.sample.default: argument 'x' has rank 3",
                "  declared  int8 [n, ic, h, w]",
                "  received  int8[2, 4, 6]",
                "  bound     nothing yet",
            ],
        ),
        (
            {"x": TensorType(FLOAT32, (2, 4, 6, 5))},
            [
                "test.sample.default: argument 'x' has another element type",
                "  declared  int8 [n, ic, h, w]",
                "  received  float32[2, 4, 6, 5]",
                "  bound     nothing yet",
            ],
        ),
        (
            {"weight": TensorType(INT8, (8, 7, 3))},
            [
                "test.sample.default: argument 'weight' has ic=7, but ic is 4 already",
                "  declared  int8 [oc, ic, 3]",
                "  received  int8[8, 7, 3]",
                "  bound     n=2 ic=4 h=6 w=5 oc=8",
            ],
        ),
        (
            {"weight": TensorType(INT8, (8, 4, 5))},
            [
                "test.sample.default: argument 'weight' has size 5 where 3 is due",
                "  declared  int8 [oc, ic, 3]",
                "  received  int8[8, 4, 5]",
                "  bound     n=2 ic=4 h=6 w=5 oc=8",
            ],
        ),
        (
            {"bias": TensorType(FLOAT32, (9,))},
            [
                "test.sample.default: argument 'bias' has oc=9, but oc is 8 already",
                "  declared  float32 [oc] or None",
                "  received  float32[9]",
                "  bound     n=2 ic=4 h=6 w=5 oc=8",
            ],
        ),
        (
            {"weight": None},
            [
                "test.sample.default: argument 'weight' is missing",
                "  declared  int8 [oc, ic, 3]",
                "  received  None",
                "  bound     n=2 ic=4 h=6 w=5",
            ],
        ),
        (
            {"weight": 7},
            [
                "test.sample.default: argument 'weight' is not a tensor",
                "  declared  int8 [oc, ic, 3]",
                "  received  7",
                "  bound     n=2 ic=4 h=6 w=5",
            ],
        ),
        (
            {"scale": "half"},
            [
                "test.sample.default: argument 'scale' has another type",
                "  declared  float",
                "  received  'half'",
                "  bound     n=2 ic=4 h=6 w=5 oc=8",
            ],
        ),
        (
            {"mode": "gelu"},
            [
                "test.sample.default: argument 'mode' has an unknown value",
                "  declared  Literal['none', 'relu']",
                "  received  'gelu'",
                "  bound     n=2 ic=4 h=6 w=5 oc=8",
            ],
        ),
        (
            {"x": TensorType(INT8, (2, 4, 7, 5))},
            [
                "test.sample.default: h must be even",
                "  declared  h % 2 == 0",
                "  received  h=7",
            ],
        ),
        (
            {"sclae": 1.0},
            [
                (
                    "test.sample.default: it has no argument 'sclae'; its arguments are x, weight, "
                    "scale, bias, dims, flag, mode, note, unused, code_min"
                ),
            ],
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_error_says_what_came_and_what_was_due(
    sample: Operator, changes: dict[str, Any], lines: list[str]
) -> None:
    """Each refusal names the argument, its declaration, what came and the axes bound so far."""
    assert lines == error(sample, **changes)


def test_missing_argument_is_named(sample: Operator) -> None:
    """An argument without default that is not given is missing, not of some internal type."""
    with pytest.raises(ContractError) as caught:
        bind(sample, {"x": X, "weight": W})
    assert "argument 'scale' is missing" in str(caught.value)
    assert "  received  None" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "given", "bound"),
    [
        ("scale", 1, 1.0),
        ("code_min", 3.0, 3),
        ("code_min", -0.0, 0),
        ("flag", 1, True),
        ("flag", 0, False),
        ("dims", [1, 2.0], (1, 2)),
        ("dims", (), ()),
        ("note", None, None),
        ("unused", "channels_last", None),
    ],
)
def test_scalars_that_programs_share_are_taken(
    sample: Operator, name: str, given: Any, bound: Any
) -> None:
    """Programs store equal scalars once: Int for Double, Double for Int, 0 and 1 for Bool."""
    value = bind(sample, {**GOOD, name: given}).arguments[name]
    assert bound == value
    assert type(bound) is type(value)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("code_min", 3.5),
        ("code_min", math.inf),
        ("code_min", -math.inf),
        ("code_min", math.nan),
        ("code_min", "3"),
        ("flag", 2),
        ("flag", 0.5),
        ("dims", 3),
        ("dims", (1, 2.5)),
        ("dims", (1, math.inf)),
        ("dims", (1, None)),
        ("note", 5),
        ("scale", None),
        ("scale", (1.0,)),
        ("mode", None),
        ("mode", ["relu"]),
    ],
)
def test_scalars_that_lose_something_are_refused(sample: Operator, name: str, given: Any) -> None:
    """A value that its declared type cannot hold exactly breaks the contract."""
    assert f"argument '{name}'" in error(sample, **{name: given})[0]


def test_leading_axes_bind_as_one(declare: Any) -> None:
    """``*lead`` takes any number of leading axes, and must be the same wherever it stands."""

    def reference(a: Any_, b: Any_) -> Any:
        raise NotImplementedError

    operator = declare(reference, out=Any_)
    for lead in ((), (2,), (2, 3)):
        one = TensorType(INT32, (*lead, 5))
        call = bind(operator, {"a": one, "b": one})
        assert lead == call.names["lead"]
        assert (one,) == call.outputs
    with pytest.raises(ContractError, match=r"has lead=\(3,\), but lead is \(2,\) already"):
        bind(operator, {"a": TensorType(INT32, (2, 5)), "b": TensorType(INT32, (3, 5))})
    with pytest.raises(ContractError, match="has too few axes"):
        bind(operator, {"a": TensorType(INT32, ()), "b": TensorType(INT32, ())})


def test_results_that_a_program_states_must_agree(sample: Operator) -> None:
    """Another shape, element type or count of results than the contract's is refused."""
    assert bind(sample, GOOD, [TensorType(INT8, (2, 8, 3, 5))]).outputs
    with pytest.raises(ContractError) as caught:
        bind(sample, GOOD, [TensorType(INT8, (2, 8, 3, 4))])
    assert [
        "test.sample.default: result 'out' differs from the program's",
        "  declared  int8[2, 8, 3, 5]",
        "  received  int8[2, 8, 3, 4]",
        "  bound     n=2 ic=4 h=6 w=5 oc=8 h_out=3",
    ] == str(caught.value).splitlines()
    with pytest.raises(ContractError, match="the program stores 2 results, the operator has 1"):
        bind(sample, GOOD, [X, X])


def test_expression_that_fails_is_a_contract_error(declare: Any) -> None:
    """Attributes that make a derived axis impossible are refused, not passed on as Python's."""

    def reference(x: Bias, step: int, order: tuple[int, ...]) -> Any:
        raise NotImplementedError

    operator = declare(
        reference, out=Float32[Array, "half"], derived={"half": "oc // step + order[0]"}
    )
    x = TensorType(FLOAT32, (4,))
    for step, order in ((0, (0,)), (1, ())):
        with pytest.raises(ContractError, match="its arguments do not fit"):
            bind(operator, {"x": x, "step": step, "order": order})
    with pytest.raises(ContractError, match=r"would have shape \[-4\]"):
        bind(operator, {"x": x, "step": -1, "order": (0,)})


def test_shape_rule_gets_the_references_arguments(declare: Any) -> None:
    """Where axes cannot say a shape, a function of the arguments' shapes does."""

    def reference(x: Free, dim: int) -> Any:
        raise NotImplementedError

    def dropped(x: tuple[int, ...], dim: int) -> tuple[int, ...]:
        return (*x[:dim], *x[dim + 1 :])

    operator = declare(reference, out=Free, shape=dropped)
    call = bind(operator, {"x": TensorType(INT32, (2, 3, 4)), "dim": 1})
    assert (TensorType(INT32, (2, 4)),) == call.outputs


def test_positional_count_is_checked(sample: Operator) -> None:
    """Internal arguments are not serialized; another count than the rest is refused."""
    assert "unused" == list(bind_serialized(sample, range(9)))[-1]
    with pytest.raises(ContractError) as caught:
        bind_serialized(sample, range(10))
    assert (
        "test.sample.default: received 10 arguments, expected 9 (x, weight, scale, bias, dims, "
        "flag, mode, note, unused); the program was made for another version"
    ) == str(caught.value)
