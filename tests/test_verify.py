"""What a verification says: "equal" is bit for bit, anything else says how close, within what."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nybble.verify import CallCheck, VerifyReport

EXACT = CallCheck("aten.relu.default", "delegate 0", "float32[2] -> float32[2]", True, False, None)
CLOSE = replace(EXACT, operator="aten.linear.default", exact=False, error=4.2e-7, tolerance=1e-5)
WRONG = replace(EXACT, problem="1 of 2 differ, first at (0,): expected [1], got 2")
FOUND = f"aten.relu.default (delegate 0) float32[2] -> float32[2]: {WRONG.problem}"
AGREE = "calls agree with the reference, "


def report(*checks: CallCheck) -> VerifyReport:
    """A report of calls on a device that does not exist."""
    return VerifyReport("forward", "webgpu:0", checks, ())


def test_a_close_result_says_how_close_and_within_what() -> None:
    """Only a result that is the reference's to the last bit is called equal."""
    text = str(report(CLOSE))
    assert "within: 4.2e-07 of 1e-05" in text
    assert "equal" not in text
    assert "equal" in str(report(EXACT))
    assert "equal" in str(report(replace(CLOSE, error=0.0)))


@pytest.mark.parametrize(
    ("checks", "expected"),
    [
        ((EXACT,), "its only call agrees with the reference, bit for bit"),
        ((CLOSE,), "its only call agrees with the reference, within 4.2e-07 of its scale"),
        ((EXACT, EXACT), f"all 2 {AGREE}bit for bit"),
        (
            (CLOSE, EXACT),
            f"all 2 {AGREE}1 of them bit for bit, the other within 4.2e-07 of its scale",
        ),
        ((CLOSE, CLOSE), f"all 2 {AGREE}within 4.2e-07 of their scale"),
        (
            (EXACT, CLOSE, CLOSE),
            f"all 3 {AGREE}1 of them bit for bit, the others within 4.2e-07 of their scale",
        ),
        ((), "there is no call to compare"),
        ((WRONG,), f"its only call differs: {FOUND}"),
        ((EXACT, WRONG), f"1 of 2 calls differs: {FOUND}"),
        ((WRONG, WRONG), f"2 of 2 calls differ; the first is {FOUND}"),
    ],
)
def test_the_summary_counts_in_words_that_fit(checks: tuple[CallCheck, ...], expected: str) -> None:
    """One call is not "all 1 calls", and tolerances are told where there are any."""
    assert f"forward on webgpu:0: {expected}" == report(*checks).summary


def test_a_problem_with_brackets_is_printed_whole() -> None:
    """What differs is text, not markup."""
    assert "expected [1], got 2" in " ".join(str(report(WRONG)).split())
