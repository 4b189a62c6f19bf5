"""Do two devices agree? Every call on each of them from the same inputs, and the whole method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from nybble.compare_report import CallComparison, CallRun, CompareReport, Difference
from nybble.contract import Alias, AnyKernel, Array, Composite, Kernel
from nybble.devices import Device, NullDevice, open_device
from nybble.errors import ContractError, DeviceError
from nybble.graph import Call, Graph, Value, call_alone
from nybble.plan import choose, make_plan
from nybble.program import load
from nybble.random_inputs import random_inputs
from nybble.report_text import call_shapes
from nybble.source import Source
from nybble.testing import describe_difference, is_exact, relative_errors, tolerance_of
from nybble.tracing import prepared, run_graph, trace_graph

__all__ = ["compare", "compare_graph"]

Runner: TypeAlias = AnyKernel | None
"""What runs a call; None is the reference on the host."""
_REPEATS = 5
"""Runs of which the times are the median."""


def compare(
    source: Source,
    *inputs: Any,
    devices: Sequence[str] = ("webgpu", "vulkan"),
    method: str | None = None,
    seed: int = 0,
    external: Sequence[Source] = (),
) -> CompareReport:
    """Run a program on several devices in this process, and compare them call by call.

    Every call runs on each device with the inputs that it has on the first one, so that a
    difference shows where it arises. Integer results must be equal. A float result may be as far
    from the first device's as the two kernels' tolerances together: each may be off by its own.
    States begin as in the file; those of programs that are loaded already are left alone.

    Args:
        source: path, bytes, or a binary file object.
        inputs: what the method takes; none for random ones.
        devices: at least two names as :func:`nybble.load` takes them, no device twice.
        method: the method's name; None for ``forward``, or the program's only one.
        seed: of random inputs.
        external: ``.ptd`` files that hold constants of the program.

    Raises:
        ContractError: fewer than two devices, one named twice, or wrong inputs.
        DeviceError: a device does not exist, or failed.
        ProgramFormatError: the bytes are no well-formed program.
        UnsupportedProgramError: something in the program cannot be run.
    """
    opened = _open_all(devices)
    with load(source, device="host", external=external) as program:
        chosen = program.method(method)
        arrays = chosen.arrays(inputs or random_inputs(chosen.inputs, seed))
        return compare_graph(opened, chosen.graph, arrays)


def compare_graph(
    devices: Sequence[Device], graph: Graph, inputs: Sequence[Array]
) -> CompareReport:
    """Compare devices on a graph and arrays of its types; see :func:`compare`."""
    sides = [_run_whole(device, graph, inputs) for device in devices]
    values = trace_graph(devices[0], graph, inputs).values
    calls = tuple(_compare_call(sides, call, values) for call in graph.calls)
    names = tuple(device.info.name for device in devices)
    seconds = tuple(side.total for side in sides)
    return CompareReport(graph.name, names, calls, _compare_whole(sides, graph), seconds)


@dataclass(frozen=True, eq=False)
class _Side:
    """One device: the whole method on it. Kernels and seconds are by a call's first result."""

    device: Device
    results: Mapping[str, Array]
    kernels: Mapping[Value, Runner]
    seconds: Mapping[Value, float]

    @property
    def total(self) -> float | None:
        """Seconds of all steps."""
        return sum(self.seconds.values()) if self.device.has_timestamps else None

    def tolerance(self, call: Call) -> float:
        """How far a call's float results may be from the reference."""
        kernel = self.kernels[call.outputs[0]]
        precision = "float32" if kernel is None or isinstance(kernel, Alias) else kernel.precision
        return 0.0 if kernel is None else tolerance_of(call.outputs[0].dtype.name, precision)


def _open_all(names: Sequence[str]) -> list[Device]:
    listed = isinstance(names, Sequence) and not isinstance(names, str)
    if not listed or len(names) < 2:
        raise ContractError(
            f"devices: expected at least two to compare, such as ('webgpu', 'vulkan'), "
            f"received {names!r}"
        )
    opened: dict[str, str] = {}
    devices = []
    for name in names:
        device = _open(name)
        found = device.info.name
        if isinstance(device, NullDevice):
            raise ContractError("devices: 'null' computes nothing that could be compared")
        if found in opened:
            raise ContractError(
                f"devices: {opened[found]!r} and {name!r} are the same device, {found}; name two "
                "different ones (`nybble doctor` lists them)"
            )
        opened[found] = name
        devices.append(device)
    return devices


def _open(name: str) -> Device:
    """A device, or an error that also says how to get its driver."""
    from nybble.doctor import driver_remedy

    try:
        return open_device(name)
    except DeviceError as error:
        if str(name).split(":", maxsplit=1)[0] not in ("webgpu", "vulkan"):
            raise
        raise DeviceError(f"{error}. For its driver: {driver_remedy()}") from None


def _run_whole(device: Device, graph: Graph, inputs: Sequence[Array]) -> _Side:
    """The method as a program runs it: outputs, states and times."""
    plan = make_plan(graph, device.capabilities)
    states = device.new_states()
    try:
        with prepared(device, plan, states) as executable:
            outputs = executable.run(inputs)
            results = dict(zip((s.name for s in graph.output_specs), outputs, strict=True))
            results.update({f"state {name}": states.read(name) for name in states.names()})
            timings = executable.profile(inputs, _REPEATS)
    finally:
        states.close()
    seconds: dict[Value, float] = {}
    for timing in timings:
        call = plan.calls[plan.steps[timing.step].call]
        made = (call.source or call).outputs[0]
        seconds[made] = seconds.get(made, 0.0) + timing.seconds
    return _Side(device, results, _chosen(device, graph), seconds)


def _chosen(device: Device, graph: Graph) -> dict[Value, Runner]:
    """What runs each call, by its first result."""
    chosen: dict[Value, Runner] = {}
    for choice in choose.choose_kernels(graph, device.capabilities).choices:
        whole = choice.call.source
        if whole is None:
            chosen[choice.call.outputs[0]] = choice.kernel
        else:
            chosen[whole.outputs[0]] = choose.viable_kernels(whole, device.capabilities)[0]
    return chosen


def _compare_call(
    sides: Sequence[_Side], call: Call, values: Mapping[Value, Array]
) -> CallComparison:
    first = sides[0]
    expected = [values[value] for value in call.outputs]
    exact = is_exact(call)
    runs = [_call_run(first, call, None)]
    for side in sides[1:]:
        actual = _run_alone(side, call, values)
        allowed = 0.0 if exact else first.tolerance(call) + side.tolerance(call)
        found = [_difference(*pair, allowed) for pair in zip(expected, actual, strict=True)]
        runs.append(_call_run(side, call, _worst(found)))
    return CallComparison(call.operator.name, call.origin, call_shapes(call), exact, tuple(runs))


def _run_alone(side: _Side, call: Call, values: Mapping[Value, Array]) -> list[Array]:
    """A call's results with given inputs, by the kernel that runs it in the whole method."""
    graph = call_alone(call)
    kernel = side.kernels[call.outputs[0]]
    forced = {} if kernel is None else {call: kernel}
    return run_graph(side.device, graph, [values[value] for value in graph.inputs], forced)


def _call_run(side: _Side, call: Call, difference: Difference | None) -> CallRun:
    made = call.outputs[0]
    seconds = side.seconds.get(made, 0.0) if side.device.has_timestamps else None
    name = _kernel_name(call, side.kernels[made])
    return CallRun(side.device.info.name, name, seconds, difference)


def _kernel_name(call: Call, kernel: Runner) -> str:
    """The shader's name; ``product 2/3`` is the second of the operator's three that share it."""
    if isinstance(kernel, Composite):
        return kernel.name
    if not isinstance(kernel, Kernel):
        return "host" if kernel is None else "view"
    same = [
        other
        for other in call.operator.kernels
        if isinstance(other, Kernel) and other.shader == kernel.shader
    ]
    number = f" {same.index(kernel) + 1}/{len(same)}" if len(same) > 1 else ""
    return kernel.shader.removesuffix(".wgsl") + number


def _difference(expected: Array, actual: Array, allowed: float | None) -> Difference:
    """``allowed`` None: differ as they may, short of another shape or type."""
    if (expected.shape, expected.dtype) != (actual.shape, actual.dtype):
        return Difference(float("inf"), allowed, describe_difference(expected, actual, 0.0))
    if allowed and expected.dtype.kind != "f":
        allowed = 0.0
    error = float(relative_errors(expected, actual).max(initial=0.0))
    problem = None if allowed is None else describe_difference(expected, actual, allowed)
    return Difference(error, allowed, problem)


def _worst(differences: Sequence[Difference]) -> Difference:
    return max(differences, key=lambda d: (d.problem is not None, d.error))


def _compare_whole(
    sides: Sequence[_Side], graph: Graph
) -> tuple[tuple[str, tuple[Difference, ...]], ...]:
    """How far each output and state is from the first device's, after all calls in a row.

    Small differences may grow on the way, for which there is no bound; exact calls leave none.
    """
    allowed = 0.0 if all(map(is_exact, graph.calls)) else None
    return tuple(
        (name, tuple(_difference(expected, side.results[name], allowed) for side in sides[1:]))
        for name, expected in sides[0].results.items()
    )
