"""Reverse-mode differentiation of a graph under construction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path

import numpy as np

import nybble.ops
from nybble.errors import ContractError, UnsupportedProgramError
from nybble.graph import Call, GraphBuilder, Value
from nybble.graph.gradients import GRADIENTS, NO_GRADIENT

__all__ = ["differentiate", "gradients_that_exist", "load_gradients"]

_DIFFERENTIABLE = ("float32", "uint8")
"""uint8 is differentiable where it holds 4-bit codes: the straight-through estimator gives the
codes of a layer the gradient of the float weight that they stand for, ``[n, k]``."""


@lru_cache(maxsize=1)
def load_gradients() -> None:
    """Declare every row: each family of operators may have a ``gradients.py``."""
    folder = Path(nybble.ops.__file__).resolve().parent
    for family in sorted(folder.iterdir()):
        if (family / "gradients.py").is_file():
            import_module(f"nybble.ops.{family.name}.gradients")


def differentiate(
    b: GraphBuilder, loss: Value | Mapping[Value, Value], wrt: Sequence[Value]
) -> dict[Value, Value]:
    """Append to ``b`` the calls that compute gradients.

    Args:
        b: the graph so far; the calls on the way from ``wrt`` to ``loss`` must be in it.
        loss: a float32 scalar, or values with the gradients that reach them.
        wrt: values to differentiate with respect to. For uint8 codes the gradient is that of the
            float weight which they stand for.

    Returns:
        The gradient of each of ``wrt``; zeros for one that the loss does not depend on.

    Raises:
        ContractError: the loss is no float32 scalar.
        UnsupportedProgramError: operators on the way have no gradient; all are named.
    """
    found = gradients_that_exist(b, loss, wrt)
    return {v: found[v] if v in found else _zeros(b, v) for v in wrt}


def gradients_that_exist(
    b: GraphBuilder, loss: Value | Mapping[Value, Value], wrt: Sequence[Value]
) -> dict[Value, Value]:
    """As :func:`differentiate`, without those of ``wrt`` that the loss does not depend on."""
    load_gradients()
    seeds = _seeds(b, loss)
    active = _active(b.calls, wrt)
    forward = [call for call in b.calls if any(v in active for v in call.outputs)]
    wanted = _wanted(forward, seeds, active)
    _refuse_missing([*wanted, *_ends(b.calls, seeds, active)])
    sweep = _Sweep(b, seeds, active)
    for call in reversed(wanted):
        sweep.add(call)
    sweep.raise_problems()
    return {value: sweep.gradients[value] for value in wrt if value in sweep.gradients}


def _zeros(b: GraphBuilder, value: Value) -> Value:
    return b.constant(np.zeros(value.shape, np.float32))


def _seeds(b: GraphBuilder, loss: Value | Mapping[Value, Value]) -> dict[Value, Value]:
    if isinstance(loss, Mapping):
        return dict(loss)
    if loss.dtype.name != "float32" or loss.shape not in ((), (1,)):
        raise ContractError(
            f"a loss must be a float32 scalar, received {loss}; reduce it, for example with "
            "b.math.mean(x)"
        )
    return {loss: b.constant(np.ones(loss.shape, np.float32))}


def _active(calls: Sequence[Call], wrt: Iterable[Value]) -> set[Value]:
    """The values that depend on ``wrt`` through differentiable element types."""
    active = set(wrt)
    for call in calls:
        if any(v in active for v in call.inputs.values()):
            active.update(v for v in call.outputs if v.dtype.name in _DIFFERENTIABLE)
    return active


def _wanted(
    calls: Sequence[Call], seeds: Iterable[Value], active: set[Value] | None = None
) -> list[Call]:
    """The calls on which ``seeds`` depend, in forward order; if given, through ``active`` alone."""
    reached = set(seeds)
    found = []
    for call in reversed(calls):
        if reached.intersection(call.outputs):
            found.append(call)
            reached.update(v for v in call.inputs.values() if active is None or v in active)
    return found[::-1]


def _ends(calls: Sequence[Call], seeds: Iterable[Value], active: set[Value]) -> list[Call]:
    """Calls declared to have no gradient, at whose integers a gradient would end unseen."""
    return [
        call
        for call in _wanted(calls, seeds)
        if call.operator.name in NO_GRADIENT
        and any(v in active for v in call.inputs.values())
        and not any(v in active for v in call.outputs)
    ]


def _refuse_missing(calls: Sequence[Call]) -> None:
    problems = []
    for call in calls:
        name = call.operator.name
        if name in NO_GRADIENT:
            problems.append(f"{name} ({call.origin}) has no gradient: {NO_GRADIENT[name]}")
        elif name not in GRADIENTS:
            problems.append(f"{name} ({call.origin}): nybble knows no gradient of it")
    _raise(problems)


def _raise(problems: Iterable[str]) -> None:
    unique = tuple(dict.fromkeys(problems))
    if unique:
        listed = "\n".join(f"  - {problem}" for problem in unique)
        raise UnsupportedProgramError(
            "the loss cannot be differentiated with respect to the trainable weights:\n"
            f"{listed}\nTrain only layers behind these calls (trainable=...), or another program",
            unique,
        )


class _Sweep:
    def __init__(self, b: GraphBuilder, seeds: Mapping[Value, Value], active: set[Value]) -> None:
        self.b = b
        self.gradients = dict(seeds)
        self.active = active
        self.problems: list[str] = []

    def add(self, call: Call) -> None:
        """Pass the gradients of a call's results on to its arguments."""
        d_outs = [self.gradients.get(value) for value in call.outputs]
        if all(d is None for d in d_outs):
            return
        outer, self.b.origin = self.b.origin, f"gradient of {call.origin}"
        try:
            found = GRADIENTS[call.operator.name](self.b, call, *d_outs)
            for name, value in call.inputs.items():
                if value in self.active:
                    self.accumulate(call, name, value, found)
        finally:
            self.b.origin = outer

    def accumulate(
        self, call: Call, name: str, value: Value, found: Mapping[str, Value | None]
    ) -> None:
        gradient = found.get(name)
        if gradient is None:
            if name not in found:
                self.problems.append(
                    f"{call.operator.name} ({call.origin}) has no gradient with respect to its "
                    f"argument '{name}'"
                )
            return
        if value.dtype.name == "float32" and gradient.shape != value.shape:
            gradient = self.b.math.sum_to(gradient, value.shape)
        known = self.gradients.get(value)
        self.gradients[value] = gradient if known is None else self.b.math.add(known, gradient)

    def raise_problems(self) -> None:
        _raise(self.problems)
