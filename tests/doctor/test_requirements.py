"""Installed versions against those that nybble asks for, and the variable that hides a driver."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from nybble.doctor import driver_remedy, judge
from nybble.doctor.requirements import read_requirements, satisfies

from .test_doctor import FACTS, INSTALLED, NO_ADAPTER, named

ASKED = read_requirements(
    [
        "numpy>=1.26",
        "wgpu<0.33,>=0.32",
        "rich>=13.7",
        "executorch==1.5.1; extra == 'export'",
        'torch<2.14,>=2.13; extra == "export"',
        'torchao<0.19,>=0.18; extra == "export"',
        'torch>=2.4; extra == "torch"',
        "colorama (>=0.4) ; sys_platform == 'win32'",
    ]
)
MACHINE = replace(FACTS, requirements=ASKED)


def test_requirements_are_read_by_extra() -> None:
    """Under "" stands what is always needed; the lower bound comes first."""
    assert {"numpy": ">=1.26", "wgpu": ">=0.32,<0.33", "rich": ">=13.7"} == ASKED[""]
    assert {"torch": ">=2.4"} == ASKED["torch"]
    assert "==1.5.1" == ASKED["export"]["executorch"]
    assert {} == read_requirements(None)


def test_versions_that_fit_are_ok() -> None:
    """Local versions of torch (+cpu) are the same version."""
    packages = {**INSTALLED, "torch": "2.13.0+cpu", "rich": "14.0"}
    assert {"ok"} == {check.status for check in judge(replace(MACHINE, packages=packages))}


def test_a_torch_too_new_for_the_exporter_is_noted_with_the_line_that_mends_it() -> None:
    """The extra [torch] takes it, the exporter does not."""
    checks = judge(replace(MACHINE, packages={**INSTALLED, "torch": "2.14.1"}))
    check = named(checks, "extra [export]")
    assert ("note", 'pip install "torch>=2.13,<2.14"') == (check.status, check.remedy)
    assert "torch 2.14.1 does not fit torch>=2.13,<2.14: needed to make" in check.detail
    assert "ok" == named(checks, "extra [torch]").status


def test_one_that_does_not_fit_and_one_absent_are_mended_together() -> None:
    """One line brings both."""
    packages = {**INSTALLED, "torch": "2.14.1", "executorch": None}
    check = named(judge(replace(MACHINE, packages=packages)), "extra [export]")
    assert "executorch not installed" in check.detail
    assert 'pip install "torch>=2.13,<2.14" "executorch==1.5.1"' == check.remedy


@pytest.mark.parametrize(
    ("name", "version"), [("wgpu", "0.33.0"), ("numpy", "1.25"), ("rich", "9")]
)
def test_a_package_that_nybble_always_needs_must_fit(name: str, version: str) -> None:
    """Another wgpu may have another API: that is missing, not ok."""
    check = named(judge(replace(MACHINE, packages={**INSTALLED, name: version})), name)
    assert "missing" == check.status
    assert f'pip install "{name}{ASKED[""][name]}"' == check.remedy


def test_scikit_learn_is_no_part_of_exporting() -> None:
    """Only the script that trained the demo's network imports it."""
    check = named(judge(replace(MACHINE, packages=INSTALLED)), "extra [export]")
    assert "ok" == check.status
    assert "scikit" not in check.detail


@contextmanager
def without_packaging(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make ``import packaging`` fail."""
    real = builtins.__import__

    def fail(name: str, *rest: Any) -> Any:
        if name.startswith("packaging"):
            raise ImportError(name)
        return real(name, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(builtins, "__import__", fail)
        yield


@pytest.mark.parametrize(
    ("version", "specifier", "fits"),
    [
        ("2.13.0", ">=2.13,<2.14", True),
        ("2.13", ">=2.13.0", True),
        ("2.13.1+cu130", ">=2.13,<2.14", True),
        ("2.14.0", ">=2.13,<2.14", False),
        ("2.14.1+cpu", ">=2.13,<2.14", False),
        ("2.9.1", ">=2.13", False),
        ("1.5.1", "==1.5.1", True),
        ("1.5.1+cpu", "==1.5.1", True),
        ("1.5.2", "==1.5.1", False),
        ("1.5.2", "==1.5.*", True),
        ("1.50", "==1.5.*", False),
        ("1.5.2", "!=1.5.2", False),
        ("0.3", "~=0.2", True),
        ("1.0", "~=0.2", False),
        ("0.2", "<=0.2", True),
        ("0.2.1", ">0.2", True),
        ("7", "", True),
    ],
)
def test_versions_compare_alike_with_and_without_packaging(
    monkeypatch: pytest.MonkeyPatch, version: str, specifier: str, fits: bool
) -> None:
    """The package may be absent; then numbers are compared."""
    assert fits == satisfies(version, specifier)
    with without_packaging(monkeypatch):
        assert fits == satisfies(version, specifier)


def test_a_variable_that_hides_every_driver_is_named_first() -> None:
    """Mesa may well be there: it is the variable that keeps it out."""
    facts = replace(NO_ADAPTER, driver_variables={"VK_DRIVER_FILES": "/nonexistent.json"})
    remedy = named(judge(facts), "WebGPU").remedy
    assert remedy.startswith("Correct or unset VK_DRIVER_FILES=/nonexistent.json")
    assert remedy.index("VK_DRIVER_FILES") < remedy.index("apt-get install")
    assert named(judge(NO_ADAPTER), "WebGPU").remedy.startswith("sudo apt-get")


@pytest.mark.parametrize("system", ["Linux", "Darwin"])
def test_the_remedy_of_other_commands_names_the_variable_too(
    monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    """Where drivers are Vulkan's: Metal reads no such variable."""
    monkeypatch.setattr("platform.system", lambda: system)
    monkeypatch.setenv("VK_ICD_FILENAMES", "gone.json")
    monkeypatch.delenv("VK_DRIVER_FILES", raising=False)
    assert ("unset VK_ICD_FILENAMES=gone.json" in driver_remedy()) == (system == "Linux")
