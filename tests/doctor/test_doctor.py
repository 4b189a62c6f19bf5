"""The doctor's judgement of machines that we have not got, and its look at this one."""

from __future__ import annotations

import io
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from nybble.doctor import AdapterFacts, Check, Facts, examine, judge, show
from nybble.doctor.facts import read_probe

INSTALLED = {
    "nybble": "0.1.0",
    "numpy": "2.4.6",
    "wgpu": "0.32.0",
    "torch": "2.13.0",
    "torchao": "0.18.0",
    "executorch": "1.5.1",
}
ADAPTER = AdapterFacts(
    name="webgpu:0",
    adapter="llvmpipe (LLVM 15.0.6, 256 bits)",
    driver="Mesa 25.0.7 (LLVM 15.0.6)",
    kind="cpu",
    backend="Vulkan",
    features=("shader-f16", "subgroup", "timestamp-query"),
    limits={
        "max-storage-buffer-binding-size": 128 << 20,
        "max-buffer-size": 1 << 31,
        "max-compute-workgroup-storage-size": 32 << 10,
        "max-compute-invocations-per-workgroup": 1024,
        "max-compute-workgroups-per-dimension": 65535,
        "max-storage-buffers-per-shader-stage": 48,
    },
    packed_dot="",
)
FACTS = Facts(
    python=(3, 11, 7),
    system="Linux",
    distribution="debian",
    packages=INSTALLED,
    adapters=(ADAPTER,),
)
NO_ADAPTER = replace(FACTS, adapters=(), probe_error="no adapter")


def named(checks: tuple[Check, ...], name: str) -> Check:
    """Return the one check called ``name``."""
    (found,) = [check for check in checks if check.name.strip() == name]
    return found


def printed(checks: tuple[Check, ...], width: int = 80) -> str:
    """Return what the doctor prints into a pipe."""
    stream = io.StringIO()
    show(checks, Console(file=stream, width=width, highlight=False, markup=False))
    return stream.getvalue()


def test_a_complete_machine_misses_nothing() -> None:
    """With a good adapter and all packages, every check is ok."""
    assert {"ok"} == {check.status for check in judge(FACTS)}


@pytest.mark.parametrize(
    ("system", "distribution", "remedy"),
    [
        ("Linux", "debian", "apt-get install libvulkan1 mesa-vulkan-drivers"),
        ("Linux", "pop ubuntu debian", "apt-get install libvulkan1 mesa-vulkan-drivers"),
        ("Linux", "fedora", "Vulkan loader"),
        ("Darwin", "", "Metal"),
        ("Windows", "", "Direct3D 12"),
    ],
)
def test_no_adapter_is_missing_with_the_systems_own_remedy(
    system: str, distribution: str, remedy: str
) -> None:
    """A machine without an adapter is told how to get one, in its system's words."""
    facts = replace(NO_ADAPTER, system=system, distribution=distribution)
    check = named(judge(facts), "WebGPU")
    assert check.status == "missing"
    assert remedy in check.remedy


def test_each_adapter_is_found_under_the_name_that_load_takes() -> None:
    """Checks bear the device names of ``nybble.devices()``, Dawn's beside wgpu's."""
    second = replace(ADAPTER, name="webgpu:1", adapter="second")
    dawn = replace(ADAPTER, name="dawn:0", features=("subgroups",))
    checks = judge(replace(FACTS, adapters=(ADAPTER, second, dawn)))
    assert "second" in named(checks, "webgpu:1").detail
    assert "ok" == named(checks, "dawn:0").status
    assert {"ok"} == {check.status for check in checks if check.name.strip() == "subgroup"}


def test_an_absent_feature_is_noted_with_what_it_costs() -> None:
    """Without timestamps profiles are less exact; nothing is missing for that."""
    checks = judge(replace(FACTS, adapters=(replace(ADAPTER, features=()),)))
    check = named(checks, "timestamp-query")
    assert "note" == check.status
    assert "profile" in check.detail


@pytest.mark.parametrize(
    ("driver", "status"),
    [("Mesa 22.3.6 (LLVM 15.0.6)", "note"), ("Mesa 25.0.7-2~bpo12+1", "ok"), ("", "ok")],
)
def test_an_old_lavapipe_is_noted_with_the_newer_one(driver: str, status: str) -> None:
    """Mesa 22's software driver works but is slow: a line of its own below the adapter."""
    adapter = replace(ADAPTER, driver=driver, automatic=True)
    checks = judge(replace(FACTS, adapters=(adapter,)))
    assert ("ok", True) == (
        named(checks, "webgpu:0").status,
        named(checks, "webgpu:0").detail.endswith("; device='auto' takes it"),
    )
    assert status == max((c.status for c in checks if c.name == "  driver"), default="ok")
    assert ("bookworm-backports" in printed(checks, 300)) == (status == "note")
    assert "Dawn" not in printed(checks, 300)


def test_a_wrong_packed_dot_is_missing() -> None:
    """An adapter whose trial kernel failed is not called good."""
    wrong = replace(ADAPTER, packed_dot="dot4I8Packed gave 1 instead of 16519")
    check = named(judge(replace(FACTS, adapters=(wrong,))), "packed int8 dot")
    assert ("missing", wrong.packed_dot) == (check.status, check.detail)


def test_limits_below_the_smallest_device_are_noted() -> None:
    """An adapter with fewer storage buffers than WebGPU demands is noted, and which limit it is."""
    limits = {**ADAPTER.limits, "max-storage-buffers-per-shader-stage": 4}
    check = named(judge(replace(FACTS, adapters=(replace(ADAPTER, limits=limits),))), "limits")
    assert "note" == check.status
    assert check.detail.endswith("minimum: storage buffers a kernel")


def test_an_nvidia_device_without_its_vulkan_driver_is_missing() -> None:
    """An NVIDIA card in a container that hides its graphics driver is told the variable."""
    checks = judge(replace(FACTS, nvidia_device=True))
    assert "NVIDIA_DRIVER_CAPABILITIES" in named(checks, "NVIDIA").remedy
    seen = replace(ADAPTER, adapter="NVIDIA H200")
    present = judge(replace(FACTS, nvidia_device=True, adapters=(seen,)))
    assert "NVIDIA" not in {check.name for check in present}


def test_absent_extras_are_noted_with_their_command() -> None:
    """Without torch both extras are notes, not failures, and say what to install."""
    packages = {**INSTALLED, "torch": None}
    checks = judge(replace(FACTS, packages=packages))
    for extra in ("torch", "export"):
        check = named(checks, f"extra [{extra}]")
        assert "note" == check.status
        assert f'pip install "nybble[{extra}]"' == check.remedy


def test_vulkan_is_judged_beside_webgpu() -> None:
    """A Vulkan adapter is told with its matrix units; a failed trial or a refused one is a note."""
    good = replace(ADAPTER, name="vulkan:0", features=("i8xi8->i32 16x16x32", "shaderInt8"))
    assert (
        "i8xi8->i32 16x16x32"
        == named(judge(replace(FACTS, adapters=(good,))), "matrix units").detail
    )
    bad = replace(good, trial="the trial kernel gave 1 for 2")
    facts = replace(FACTS, adapters=(bad,), vulkan_problems=("b: too old",))
    assert "note" == named(judge(facts), "vulkan:0").status
    assert named(judge(facts), "vulkan:0").detail.endswith(": the trial kernel gave 1 for 2")
    assert ("note", "b: too old") == (
        named(judge(facts), "Vulkan").status, named(judge(facts), "Vulkan").detail
    )  # fmt: skip


def test_what_vulkan_can_do_is_told() -> None:
    """Subgroups, timestamps and memory of a Vulkan adapter; timestamps may be missing."""
    plain = replace(ADAPTER, name="vulkan:0", subgroup_size=32)
    checks = judge(replace(FACTS, adapters=(plain,)))
    assert ("ok", "32 threads") == (
        named(checks, "subgroups").status, named(checks, "subgroups").detail
    )  # fmt: skip
    assert ("note", "no: nybble profile times dispatches less exactly") == (
        named(checks, "timestamps").status, named(checks, "timestamps").detail
    )  # fmt: skip
    assert "its own, reached by copies" == named(checks, "memory").detail
    shared = replace(plain, timestamp_bits=36, unified=True)
    checks = judge(replace(FACTS, adapters=(shared,)))
    assert ("ok", "36 bits") == (
        named(checks, "timestamps").status, named(checks, "timestamps").detail
    )  # fmt: skip
    assert "shared with the host" == named(checks, "memory").detail


@pytest.mark.parametrize("name", ["webgpu:0", "vulkan:0"])
def test_what_auto_takes_is_told(name: str) -> None:
    """The adapter that ``auto`` takes says so, and no other."""
    adapter = replace(ADAPTER, name=name)
    for automatic in (True, False):
        checks = judge(replace(FACTS, adapters=(replace(adapter, automatic=automatic),)))
        assert automatic == ("; device='auto' takes it" in named(checks, name).detail)


def test_vulkan_is_called_optional_only_beside_webgpu() -> None:
    """Where WebGPU is missing too, nobody is told that programs run through it."""
    beside = judge(replace(FACTS, vulkan_problems=("no loader",)))
    assert "Not needed" in named(beside, "Vulkan").remedy
    alone = judge(replace(NO_ADAPTER, vulkan_problems=("no loader",)))
    assert "" == named(alone, "Vulkan").remedy


def test_a_missing_wgpu_is_missing() -> None:
    """Without wgpu there is no WebGPU, and pip is named."""
    check = named(judge(replace(FACTS, packages={**INSTALLED, "wgpu": None})), "wgpu")
    assert ("missing", "pip install wgpu") == (check.status, check.remedy)


def test_closed_device_files_have_a_remedy() -> None:
    """A closed GPU device file is told with the command that opens it."""
    checks = judge(replace(FACTS, render_node_refused=True))
    assert "usermod" in named(checks, "permissions").remedy


def test_a_crashed_probe_keeps_what_it_had_said() -> None:
    """Adapters listed before a driver ended the process are kept; a line cut short is dropped."""
    record = {"name": "webgpu:0", "adapter": "a", "driver": "d", "kind": "cpu", "backend": "Metal"}
    vulkan = {**record, "name": "vulkan:0", "trial": "the trial kernel ended the process"}
    lines = [record, {"vulkan_problem": "b: too old"}, vulkan]
    adapters, error, problems = read_probe([*map(json.dumps, lines), '{"name": "webgpu:0", "pack'])
    assert ("a", "the trial kernel was not run") == (adapters[0].adapter, adapters[0].packed_dot)
    assert "the trial kernel ended the process" == adapters[1].trial
    assert ("", ("b: too old",)) == (error, problems)


@pytest.mark.skipif(os.name != "posix", reason="the stand-in for Python is a shell script")
def test_a_driver_that_aborts_its_process_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver that takes the probe's process down leaves the doctor standing, and is reported."""
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\necho driver: fatal >&2\nkill -ABRT $$\n", encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    check = named(examine(), "WebGPU")
    assert ("missing", "the probe ended with exit status -6: driver: fatal") == (
        check.status,
        check.detail,
    )


def test_remedies_and_the_summary_are_printed() -> None:
    """What is missing is summed up in the last line, and its remedy stands below it."""
    text = printed(judge(NO_ADAPTER))
    assert "apt-get install libvulkan1" in " ".join(text.split())
    assert text.splitlines()[-1].startswith("Missing: WebGPU.")
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "\x1b" not in text


def test_lines_about_an_adapter_are_indented_below_it() -> None:
    """Their status and their remedies too, so that the eye finds the next adapter."""
    old = replace(ADAPTER, driver="Mesa 22.3.6", features=())
    lines = printed(judge(replace(FACTS, adapters=(old,))), 120).splitlines()
    start = next(i for i, line in enumerate(lines) if "webgpu:0" in line)
    end = next(i for i, line in enumerate(lines) if "extra [torch]" in line)
    assert end - start > 5
    assert all(line.startswith("  ") for line in lines[start + 1 : end])
    # Names and details stay in their columns.
    assert lines[start].index("llvmpipe") == lines[start + 1].index("Mesa 22.3.6's")


def test_this_machine_is_examined_without_an_exception() -> None:
    """Whatever this machine has, the doctor finds its own Python and numpy."""
    checks = examine()
    assert "ok" == named(checks, "Python").status
    assert "ok" == named(checks, "numpy").status


@pytest.mark.skipif(sys.platform != "linux", reason="Vulkan's loader variables are Linux's")
def test_a_machine_without_vulkan_driver_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the Vulkan loader is told of no driver, WebGPU is missing, and nothing else fails."""
    for variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        monkeypatch.setenv(variable, os.devnull)
    checks = examine()
    check = named(checks, "WebGPU")
    assert "missing" == check.status
    assert check.remedy
    assert not [check for check in checks if check.name.startswith(("webgpu:", "dawn:"))]


@pytest.mark.device
def test_an_adapter_of_this_machine_multiplies_packed_bytes_right() -> None:
    """The trial kernel runs on the first adapter, and signed lanes give the signed sum."""
    first, *_ = [check for check in examine() if check.name.strip() == "packed int8 dot"]
    assert "ok" == first.status, first.detail
