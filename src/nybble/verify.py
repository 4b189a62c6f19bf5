"""Is it right on this GPU? Every call on the device against the host reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.markup import escape
from rich.table import Table

from nybble.contract import Array
from nybble.devices import Device, HostDevice, run_reference
from nybble.graph import Call, Graph, Value
from nybble.plan import Capabilities
from nybble.plan.choose import precision_of
from nybble.plan.place import COPY
from nybble.report_text import Words, call_shapes, new_table, short_name, short_shapes, table_text
from nybble.testing import compare, is_exact, relative_errors, tolerance_of
from nybble.tracing import run_graph, trace_graph

__all__ = ["CallCheck", "VerifyReport", "verify_method"]


@dataclass(frozen=True)
class CallCheck:
    """One call's comparison; ``problem`` is None where device and reference agree.

    ``error`` is the largest of any element, relative to the larger of the element and the
    result's root mean square; it is 0 for equal results, and of interest where they agree.
    ``tolerance`` is the most that it may be: 0 where results must be equal.
    """

    operator: str
    origin: str
    shapes: str
    exact: bool
    on_host: bool
    problem: str | None
    error: float = 0.0
    tolerance: float = 0.0

    @property
    def result(self) -> str:
        """What was found: the problem, "equal", or how close within which tolerance."""
        if self.problem is not None:
            return self.problem
        return f"within: {self.error:.1e} of {self.tolerance:.1g}" if self.error else "equal"


@dataclass(frozen=True)
class VerifyReport:
    """The comparison of a method on a device; true when everything agrees."""

    method: str
    device: str
    checks: tuple[CallCheck, ...]
    problems: tuple[str, ...]

    def __bool__(self) -> bool:
        return not self.problems and all(check.problem is None for check in self.checks)

    @property
    def first_problem(self) -> CallCheck | None:
        """The first call that differs."""
        return next((check for check in self.checks if check.problem), None)

    @property
    def summary(self) -> str:
        """One sentence."""
        start = f"{self.method} on {self.device}"
        wrong = [check for check in self.checks if check.problem]
        if self.device == "host":
            return f"{start}: the references themselves; nothing was compared"
        if wrong:
            return f"{start}: {_differing(len(self.checks), wrong)}"
        return f"{start}: {self.problems[0] if self.problems else self._agreeing()}"

    def _agreeing(self) -> str:
        total, exact = len(self.checks), sum(check.exact for check in self.checks)
        if not total:
            return "there is no call to compare"
        start = "its only call agrees" if total == 1 else f"all {total} calls agree"
        if exact == total:
            return f"{start} with the reference, bit for bit"
        others = ""
        if exact:
            others = f"{exact} of them bit for bit, the other{'s' * (total - exact > 1)} "
        scale = "its scale" if total - exact == 1 else "their scale"
        worst = max(check.error for check in self.checks)
        return f"{start} with the reference, {others}within {worst:.1e} of {scale}"

    def table(self) -> Table:
        """A row for each call."""
        table = new_table(self.summary)
        for column in ("#", "call", "shapes", "check", "result"):
            table.add_column(column, justify="right" if column == "#" else "left", overflow="fold")
        for number, check in enumerate(self.checks):
            kind = "on host" if check.on_host else "bit for bit" if check.exact else "tolerance"
            style = "green" if check.problem is None else "red"
            result = f"[{style}]{escape(check.result)}[/]"
            name, shapes = short_name(check.operator), short_shapes(check.shapes)
            table.add_row(str(number), Words(name), Words(shapes), kind, result)
        return table

    def __str__(self) -> str:
        return table_text(self.table())

    def __repr__(self) -> str:
        return f"<VerifyReport: {self.summary}>"


def _differing(total: int, wrong: Sequence[CallCheck]) -> str:
    first = wrong[0]
    found = f"{first.operator} ({first.origin}) {first.shapes}: {first.problem}"
    if total == 1:
        return f"its only call differs: {found}"
    if len(wrong) == 1:
        return f"1 of {total} calls differs: {found}"
    return f"{len(wrong)} of {total} calls differ; the first is {found}"


def verify_method(
    device: Device, source: Graph, graph: Graph, inputs: Sequence[Array]
) -> VerifyReport:
    """Compare every call of ``graph`` on a device with its reference.

    Each reference gets the device's own inputs, so that an error shows where it arises. The run
    with shared buffers must equal the run that keeps every value; and where every call is exact,
    the outputs must equal the reference of ``source``, the graph before any pass. States begin
    as in the file, and those of the program are left alone.
    """
    trace = trace_graph(device, graph, inputs)
    checks = tuple(
        _check(call, results, trace.values, index in trace.hosted, device.capabilities)
        for index, (call, results) in enumerate(zip(trace.plan.calls, trace.results, strict=True))
        if call.operator.name != COPY
    )
    kept = [trace.array(place.value) for place in trace.plan.outputs]
    problems = _whole(device, source, graph, inputs, kept)
    return VerifyReport(graph.name, device.info.name, checks, problems)


def _check(
    call: Call,
    results: Sequence[Array],
    values: Mapping[Value, Array],
    on_host: bool,
    device: Capabilities,
) -> CallCheck:
    if call.source is not None and call.source.outputs == call.outputs:
        # The last of several calls in place of one: they are together what must be right.
        call = call.source
    tensors = {name: values[v] for name, v in call.inputs.items() if v.constant is None}
    expected = run_reference(call, tensors)
    exact = is_exact(call)
    precision = "float32" if on_host else precision_of(call, device)
    pairs = list(zip(expected, results, strict=True))
    problems = (compare(one, other, exact, precision) for one, other in pairs)
    problem = next(filter(None, problems), None)
    error = 0.0 if problem else max(map(_error, pairs), default=0.0)
    tolerance = 0.0 if exact else tolerance_of(call.outputs[0].dtype.name, precision)
    return CallCheck(
        call.operator.name,
        call.origin,
        call_shapes(call),
        exact,
        on_host,
        problem,
        error,
        tolerance,
    )


def _error(pair: tuple[Array, Array]) -> float:
    return float(relative_errors(*pair).max(initial=0.0))


def _whole(
    device: Device, source: Graph, graph: Graph, inputs: Sequence[Array], kept: Sequence[Array]
) -> tuple[str, ...]:
    problems = []
    outputs = run_graph(device, graph, inputs)
    for spec, one, other in zip(graph.output_specs, kept, outputs, strict=True):
        problem = compare(one, other, exact=True)
        if problem:
            problems.append(f"{spec.name} changes when buffers are shared: {problem}")
    exact = all(call.operator.exact for call in source.calls)
    expected = run_graph(HostDevice(), source, inputs)
    for spec, one, other in zip(graph.output_specs, expected, outputs, strict=True):
        problem = compare(one, other, exact) if exact else None
        if problem:
            problems.append(f"{spec.name} differs from the program's reference: {problem}")
    return tuple(problems)
