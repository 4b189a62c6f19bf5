"""One suite for every device: each case, on each kernel that applies, against the reference."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from nybble.contract import REGISTRY, Alias
from nybble.devices import Device
from nybble.graph import single_call
from nybble.plan.choose import why_unviable
from nybble.testing import Case, check_call

CASES_FOLDER = Path(__file__).parent / "cases"


def _cases() -> Iterator[Case]:
    for path in sorted(CASES_FOLDER.glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"conformance_cases_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield from module.CASES


CASES = list(_cases())


def _names() -> list[str]:
    return [f"{number}-{case.name}" for number, case in enumerate(CASES)]


@pytest.mark.device
@pytest.mark.parametrize("case", CASES, ids=_names())
def test_device_equals_reference(device: Device, case: Case) -> None:
    """Every kernel that can run the case gives the reference's result."""
    graph, _ = single_call(REGISTRY[case.operator], case.arguments, case.constants)
    kernels = REGISTRY[case.operator].kernels
    call = graph.calls[0]
    ran = 0
    for index, kernel in enumerate(kernels):
        if why_unviable(kernel, call, device.capabilities) is None:
            check_call(device, case, index)
            ran += not isinstance(kernel, Alias)
        elif not isinstance(kernel, Alias):
            ran += _concerns_other_adapters(str(kernel.condition), device)
    check_call(device, case)
    assert ran or any(isinstance(k, Alias) for k in kernels), "no kernel runs this case"


@pytest.mark.device
def test_every_kernel_is_reached(device: Device) -> None:
    """No kernel is without a case that runs it on this device."""
    reached = set()
    for case in CASES:
        graph, _ = single_call(REGISTRY[case.operator], case.arguments, case.constants)
        for index, kernel in enumerate(REGISTRY[case.operator].kernels):
            if why_unviable(kernel, graph.calls[0], device.capabilities) is None:
                reached.add((REGISTRY[case.operator].name, index))
    missing = [
        f"{operator.name} {getattr(kernel, 'shader', 'alias')} ({kernel.condition})"
        for operator in set(REGISTRY.values())
        for index, kernel in enumerate(operator.kernels)
        if (operator.name, index) not in reached
    ]
    hidden = [m for m in missing if not _concerns_other_adapters(m, device)]
    assert [] == hidden


def _concerns_other_adapters(text: str, device: Device) -> bool:
    """Whether a kernel is for another sort of adapter than this one."""
    mine = device.capabilities
    if "max_threads" in text and (mine.max_threads < 1024 or mine.max_workgroup_bytes < 32768):
        return True
    needed = set(re.findall(r"'([^']*)' in matrix_units", text))
    if needed - set(mine.matrix_units):
        return True
    if "and subgroups" in text and not mine.subgroups:
        return True
    return ("not software" in text) == mine.software and "software" in text


def test_operators_have_cases() -> None:
    """Every operator that has a kernel has at least one conformance case."""
    covered = {REGISTRY[case.operator].name for case in CASES}
    missing = {op.name for op in REGISTRY.values() if op.kernels} - covered
    assert set() == missing
