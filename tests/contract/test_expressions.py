from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nybble.contract import Expression


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("x.shape", "Attribute"),
        ("[1, 2]", "List"),
        ("{n: 1}", "Dict"),
        ("lambda: n", "Lambda"),
        ("[i for i in x]", "ListComp"),
        ("(y := n)", "NamedExpr"),
        ("f'{n}'", "JoinedStr"),
        ("n << 2", "LShift"),
        ("~n", "Invert"),
        ("max(*x)", "Starred"),
        ("max(x, key=n)", "keyword"),
    ],
)
def test_grammar_is_restricted(text: str, node: str) -> None:
    """Whatever is more than arithmetic on declared names is refused when it is written down."""
    with pytest.raises(ValueError, match=f"{node} is not allowed"):
        Expression(text)


@pytest.mark.parametrize("text", ["n +", "n = 1", "import os", "", "return n"])
def test_text_that_is_no_expression_is_refused(text: str) -> None:
    """Statements and unfinished text are no expressions."""
    with pytest.raises(SyntaxError):
        Expression(text)


def test_unknown_names_are_listed() -> None:
    """The check names each free name that is not declared, and those that are."""
    expression = Expression("cdiv(n * heigth, widht) + h")
    with pytest.raises(ValueError, match="^conv, grid: expression ") as caught:
        expression.check(["n", "h", "w"], "conv, grid")
    assert str(caught.value).endswith("' reads heigth, widht; known are h, n, w")


def test_free_names_leave_functions_out() -> None:
    """Functions of the language are no free names."""
    assert {"n", "kernel"} == Expression("max(n, conv_out(n, kernel[0], 1, 0, 1))").names


def test_builtins_are_out_of_reach() -> None:
    """A name that is not declared is unknown even where Python has a built-in of that name."""
    expression = Expression("open(n)")
    assert {"open", "n"} == expression.names
    with pytest.raises(KeyError, match="open"):
        expression.evaluate({"n": 1})


@given(st.integers(-1000, 1000), st.integers(1, 64))
def test_cdiv_and_round_up_are_exact(a: int, b: int) -> None:
    """cdiv is the least integer not below a / b, round_up its multiple of b."""
    names = {"a": a, "b": b}
    quotient = Expression("cdiv(a, b)").evaluate(names)
    assert (quotient - 1) * b < a <= quotient * b
    assert quotient * b == Expression("round_up(a, b)").evaluate(names)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("conv_out(7, 3, 2, 1, 1)", 4),
        ("conv_out(5, 3, 1, 0, 2)", 1),
        ("conv_out(2, 3, 1, 0, 1)", 0),
        ("pool_out(5, 2, 2, 0, 1, False)", 2),
        ("pool_out(5, 2, 2, 0, 1, True)", 3),
        ("pool_out(4, 2, 3, 1, 1, True)", 2),  # none begins in the right padding
        ("numel(x)", 24),
        ("stride_of(x, 0)", 12),
        ("stride_of(x, 2)", 1),
        ("x[1:]", (3, 4)),
        ("prod(())", 1),
        ("reciprocal(0.1)", 10.0),
        ("'a' if 3 in x else 'b'", "a"),
        ("None is None and not x == ()", True),
    ],
)
def test_functions_give_the_fields_formulas(text: str, value: object) -> None:
    """Each function of the language is the formula that its name says."""
    assert value == Expression(text).evaluate({"x": (2, 3, 4)})
