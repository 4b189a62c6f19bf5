"""What a comparison of devices found, as values and as a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.markup import escape
from rich.table import Table

from nybble.report_text import Words, new_table, short_name, short_shapes, table_text

__all__ = ["CallComparison", "CallRun", "CompareReport", "Difference"]


@dataclass(frozen=True)
class Difference:
    """How far a result is from the first device's.

    ``error`` is the largest of any element, relative to the larger of the element and the
    result's root mean square; infinite where only one of two is a finite number. ``allowed`` is
    the most that it may be: 0 for results that must be equal, None where errors may add up.
    ``problem`` says what differs where that is too much, else None.
    """

    error: float
    allowed: float | None
    problem: str | None

    def __str__(self) -> str:
        if self.problem is not None:
            return self.problem
        if not self.error:
            return "equal"
        allowed = "" if self.allowed is None else f" of {self.allowed:.1g}"
        return f"{self.error:.1e}{allowed}"


@dataclass(frozen=True)
class CallRun:
    """One call on one device: what ran it, and its time.

    ``kernel`` is the name of a shader ("product 2/3": the second of the operator's three kernels
    that share it), or of a composite of several; "host" where the device has no kernel and the
    reference ran, or "view" where nothing had to. ``seconds`` is None where the device cannot
    measure it, ``difference`` for the first device.
    """

    device: str
    kernel: str
    seconds: float | None
    difference: Difference | None


@dataclass(frozen=True)
class CallComparison:
    """One call on every device, each with the first one's inputs; ``exact``: equal bit for bit."""

    operator: str
    origin: str
    shapes: str
    exact: bool
    runs: tuple[CallRun, ...]

    @property
    def problem(self) -> str | None:
        """What differs and where, None when all devices agree."""
        first = self.runs[0].device
        return next(
            (
                f"{run.device} against {first}: {run.difference.problem}"
                for run in self.runs
                if run.difference is not None and run.difference.problem
            ),
            None,
        )


@dataclass(frozen=True)
class CompareReport:
    """The comparison of a method on several devices; true when all agree with the first.

    ``calls`` are compared one by one, from the same inputs. ``whole`` has, for each output and
    state by name, how far each device but the first is from it after the whole method.
    ``seconds`` are the times of all kernels on each device, conversions of layouts included.
    """

    method: str
    devices: tuple[str, ...]
    calls: tuple[CallComparison, ...]
    whole: tuple[tuple[str, tuple[Difference, ...]], ...]
    seconds: tuple[float | None, ...]

    def __bool__(self) -> bool:
        return not any(self._problems())

    @property
    def first_problem(self) -> CallComparison | None:
        """The first call on which the devices differ."""
        return next((call for call in self.calls if call.problem), None)

    @property
    def summary(self) -> str:
        """One sentence."""
        *most, last = self.devices
        start = f"{self.method} on {', '.join(most)} and {last}: "
        wrong = [call for call in self.calls if call.problem]
        if wrong:
            first = wrong[0]
            differ = "differs" if len(wrong) == 1 else "differ"
            return (
                f"{start}{len(wrong)} of {len(self.calls)} calls {differ}; the first is "
                f"{first.operator} ({first.origin}) {first.shapes}: {first.problem}"
            )
        problem = next(self._problems(), None)
        if problem is not None:
            return f"{start}every call agrees, and the whole does not: {problem}"
        exact = sum(call.exact for call in self.calls)
        count = len(self.calls)
        agree = f"all {count} calls agree, {exact} of them bit for bit"
        if count == 1:
            agree = f"its only call agrees{', bit for bit' if exact else ''}"
        return f"{start}{agree}; {self._end_to_end()}{self._on_host()}"

    def __repr__(self) -> str:
        return f"<CompareReport: {self.summary}>"

    def table(self) -> Table:
        """A row for each call, the times of all, and a row for each output and state."""
        table = new_table(self.summary)
        table.add_column("#", justify="right", no_wrap=True)
        for column in ("call: kernel", "shapes"):
            table.add_column(column)
        for name in self.devices:
            table.add_column(f"{name}\nus", justify="right", no_wrap=True)
        for name in self.devices[1:]:
            table.add_column("apart" if len(self.devices) == 2 else f"{name}\napart")
        for number, call in enumerate(self.calls):
            times = [_time(run.seconds) if run.kernel != "view" else "" for run in call.runs]
            apart = [_styled(run.difference) for run in call.runs if run.difference is not None]
            shapes = Words(short_shapes(call.shapes))
            table.add_row(str(number), _call_and_kernels(call), shapes, *times, *apart)
        if any("/" in run.kernel for call in self.calls for run in call.runs):
            table.caption = (
                "2/3: the second of the operator's three kernels that share this shader."
            )
            table.caption_justify = "left"
        table.add_section()
        table.add_row("", "all", "", *map(_time, self.seconds))
        for name, differences in self.whole:
            blank = [""] * (1 + len(self.devices))
            table.add_row("", Words(name), *blank, *map(_styled, differences))
        return table

    def __str__(self) -> str:
        return table_text(self.table())

    def _problems(self) -> Iterator[str]:
        yield from (call.problem for call in self.calls if call.problem)
        for name, differences in self.whole:
            for device, difference in zip(self.devices[1:], differences, strict=True):
                if difference.problem:
                    yield f"{name} on {device} against {self.devices[0]}: {difference.problem}"

    def _end_to_end(self) -> str:
        worst = max((d.error for _, found in self.whole for d in found), default=0.0)
        if not worst:
            return "end to end the results are equal"
        return f"end to end the results differ by at most {worst:.1e} of their scale"

    def _on_host(self) -> str:
        told = ""
        for index, device in enumerate(self.devices):
            count = sum(call.runs[index].kernel == "host" for call in self.calls)
            if count and device != "host":
                ran = "call has" if count == 1 else "calls have"
                told += f"; {count} {ran} no kernel on {device} and ran on the host"
        return told


def _call_and_kernels(call: CallComparison) -> Words:
    """A call and what ran it: one name where it is the same on all devices; yellow on a host."""
    names = [run.kernel for run in call.runs]
    ran = names[0] if len(set(names)) == 1 else " | ".join(names)
    return Words(f"{short_name(call.operator)}: {ran}", "yellow" if "host" in names else "")


def _styled(difference: Difference) -> str:
    style = "green" if difference.problem is None else "red"
    return f"[{style}]{escape(str(difference))}[/]"


def _time(seconds: float | None) -> str:
    """Microseconds."""
    return "" if seconds is None else f"{seconds * 1e6:,.1f}"
