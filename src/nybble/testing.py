"""Runs single calls on a device and compares them with their references.

What the conformance suite is made of; usable on anyone's own adapter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import nybble.ops  # noqa: F401  (declares the operators)
from nybble.contract import REGISTRY, AnyKernel, Array
from nybble.devices import Device, run_reference
from nybble.graph import Call, single_call
from nybble.plan import make_plan
from nybble.plan.choose import precision_of

__all__ = [
    "TOLERANCES", "Case", "check_call", "compare", "describe_difference", "is_exact",
    "relative_errors", "run_call", "run_expected", "tolerance_of",
]  # fmt: skip

TOLERANCES = {"float32": 1e-5, "float16": 1e-3}
"""Largest error of a float result relative to the scale of what it sums, by element type."""


@dataclass(frozen=True, eq=False)
class Case:
    """One call of an operator; ``constants`` names the arrays a program would hold."""

    operator: str
    arguments: Mapping[str, Any] = field(repr=False)
    constants: tuple[str, ...] = ()
    id: str = ""

    @property
    def name(self) -> str:
        """The printed name: operator, shapes of the tensors, and the id."""
        shapes = "-".join(
            "x".join(map(str, a.shape)) or "scalar"
            for a in self.arguments.values()
            if isinstance(a, np.ndarray)
        )
        return "-".join(filter(None, (self.operator.split(".")[1], shapes, self.id)))


def run_call(
    device: Device,
    operator: str,
    arguments: Mapping[str, Any],
    *,
    kernel: int | None = None,
    constants: tuple[str, ...] = (),
) -> tuple[Array, ...]:
    """Results of one call on a device.

    Args:
        device: where to run.
        operator: its serialized name.
        arguments: arrays and attributes by name.
        kernel: index of the kernel to use; None lets the planner choose.
        constants: names of the arrays that a program would hold as constants.
    """
    graph, inputs = single_call(REGISTRY[operator], arguments, constants)
    forced: dict[Any, AnyKernel] = {}
    if kernel is not None:
        forced[graph.calls[0]] = REGISTRY[operator].kernels[kernel]
    executable = device.prepare(make_plan(graph, device.capabilities, forced=forced))
    try:
        return tuple(executable.run(inputs))
    finally:
        executable.close()


def run_expected(operator: str, arguments: Mapping[str, Any]) -> tuple[Array, ...]:
    """Results of the reference."""
    graph, inputs = single_call(REGISTRY[operator], arguments)
    names = [value.name for value in graph.inputs]
    return run_reference(graph.calls[0], dict(zip(names, inputs, strict=True)))


def is_exact(call: Call) -> bool:
    """Whether a call's results are equal on every device, bit for bit."""
    return call.operator.exact or call.outputs[0].dtype.numpy.kind != "f"


def compare(expected: Array, actual: Array, exact: bool, precision: str = "float32") -> str | None:
    """What differs between two results, None when they agree.

    Exact results agree bit for bit (all NaNs are one). Other float results agree within the
    type's tolerance of the larger of the element and the result's root mean square, or that of
    the kernel's ``precision`` where it is wider.
    """
    exact = exact or expected.dtype.kind != "f"
    tolerance = 0.0 if exact else tolerance_of(expected.dtype.name, precision)
    return describe_difference(expected, actual, tolerance)


def tolerance_of(dtype: str, precision: str) -> float:
    """Largest relative error of a float result that a kernel of a precision computed."""
    return max(TOLERANCES[dtype], TOLERANCES[precision])


def describe_difference(expected: Array, actual: Array, tolerance: float) -> str | None:
    """Which elements differ by more than ``tolerance``, None when none does.

    The tolerance is relative to what :func:`relative_errors` says; with 0 the results must be
    equal bit for bit (all NaNs are one).
    """
    if expected.shape != actual.shape or expected.dtype != actual.dtype:
        return f"expected {expected.dtype}{expected.shape}, got {actual.dtype}{actual.shape}"
    if tolerance:
        wrong = relative_errors(expected, actual) > tolerance
    else:
        wrong = ~((expected == actual) | _both_nan(expected, actual))
    count = int(wrong.sum())
    if not count:
        return None
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    with np.errstate(invalid="ignore"):
        worst = np.max(np.abs(expected[wrong].astype(np.float64) - actual[wrong]))
    return (
        f"{count} of {wrong.size} differ, first at {first}: expected {expected[first]}, "
        f"got {actual[first]}; worst error {worst:.3g}"
    )


def relative_errors(expected: Array, actual: Array) -> Array:
    """How far each element is off, relative to the larger of itself and the root mean square.

    Infinite where one of two elements that differ is no finite number.
    """
    finite = np.isfinite(expected)
    wide = expected.astype(np.float64)
    scale = np.sqrt(np.mean(np.square(wide[finite]))) if finite.any() else 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        errors = np.abs(wide - actual) / np.maximum(np.abs(wide), scale)
    same = (expected == actual) | _both_nan(expected, actual)
    return np.where(same, 0.0, np.where(finite & np.isfinite(errors), errors, np.inf))


def _both_nan(expected: Array, actual: Array) -> Array:
    if expected.dtype.kind != "f":
        return np.zeros(expected.shape, bool)
    return np.isnan(expected) & np.isnan(actual)


def _precision(device: Device, case: Case, kernel: int | None) -> str:
    """The precision of the kernel that runs a case; of the planner's choice where none is given."""
    operator = REGISTRY[case.operator]
    if kernel is not None:
        return getattr(operator.kernels[kernel], "precision", "float32")
    graph, _ = single_call(operator, case.arguments, case.constants)
    return precision_of(graph.calls[0], device.capabilities)


def check_call(device: Device, case: Case, kernel: int | None = None) -> None:
    """Raise AssertionError unless the device's results agree with the reference's."""
    expected = run_expected(case.operator, case.arguments)
    actual = run_call(
        device, case.operator, case.arguments, kernel=kernel, constants=case.constants
    )
    exact = REGISTRY[case.operator].exact
    precision = _precision(device, case, kernel)
    for output, one, other in zip(REGISTRY[case.operator].outputs, expected, actual, strict=True):
        problem = compare(one, other, exact, precision)
        if problem:
            raise AssertionError(f"{case.name} on {device.info}: result '{output.name}': {problem}")
