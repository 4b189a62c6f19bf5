"""Kernels that share their work out by subgroups of 32 threads get them, or are not offered."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nybble.ops
from nybble import shaders
from nybble.devices.vulkan import MatrixShape, VulkanDevice, find_adapter, pipelines
from nybble.devices.vulkan.api import bindings
from nybble.devices.vulkan.subgroups import MATRIX_SUBGROUP, Subgroups, stage_options
from nybble.testing import Case, check_call

OPS = Path(nybble.ops.__file__).parent
NVIDIA = Subgroups(32, 32, 32, full=True)
AMD = Subgroups(64, 32, 64, full=True)
INTEL = Subgroups(32, 8, 32, full=True)
LAVAPIPE = Subgroups(8, 8, 8, full=True)
FIXED_32, FIXED_64 = Subgroups(32), Subgroups(64)


@pytest.mark.parametrize(
    ("device", "offered", "required"),
    [
        (NVIDIA, True, True),
        (AMD, True, True),
        (INTEL, True, True),
        (LAVAPIPE, False, False),
        (FIXED_32, True, False),
        (FIXED_64, False, False),
    ],
)
def test_matrix_kernels_get_32_threads_or_are_not_offered(
    device: Subgroups, *, offered: bool, required: bool
) -> None:
    """The size is required where it may be; else only a device of that usual size will do."""
    assert offered == device.offers(MATRIX_SUBGROUP)
    assert required == device.can_require(MATRIX_SUBGROUP)


def test_a_stage_requires_the_size_and_full_subgroups_where_it_may() -> None:
    """Both where the device promises both, neither where it promises none, nothing unasked."""
    options = stage_options(AMD, 32)
    assert 0x2 == options["flags"]
    assert 32 == options["pNext"].requiredSubgroupSize
    kind = bindings().VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO
    assert kind == options["pNext"].sType
    assert {"pNext"} == stage_options(replace(AMD, full=False), 32).keys()
    assert {"flags": 0x2} == stage_options(Subgroups(32, full=True), 32)
    assert {} == stage_options(FIXED_32, 32)
    assert {} == stage_options(AMD, None)


@pytest.mark.device
@pytest.mark.parametrize(("found", "reported"), [(AMD, 1), (FIXED_32, 1), (FIXED_64, 0)])
def test_no_matrix_shape_is_reported_where_32_threads_cannot_be_had(
    monkeypatch: pytest.MonkeyPatch, found: Subgroups, reported: int
) -> None:
    """Planning and doctor see matrix units only where a device's subgroups fit the kernels."""
    module = sys.modules[find_adapter.__module__]
    shape = MatrixShape(16, 16, 32, "i8", "i8", "i32", "i32", saturating=False)
    monkeypatch.setattr(module, "_matrix_shapes", lambda *_: (shape,))
    monkeypatch.setattr(module, "find_subgroups", lambda *_: found)
    usable, _ = module._found.__wrapped__()
    assert usable
    for adapter in usable:
        assert found == adapter.subgroups
        assert reported == len(adapter.matrix_shapes)
        assert bool(reported) == (str(shape) in adapter.info.features)


@pytest.mark.device
def test_pipelines_of_matrix_kernels_ask_for_their_subgroups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A kernel that is taken for one is compiled with the options, runs, and is right."""
    adapter = find_adapter("vulkan")
    size = adapter.subgroups.usual
    if not adapter.subgroups.can_require(size):
        pytest.skip("the driver has no control of subgroup sizes")
    asked: list[Any] = []

    def options(device: Subgroups, wanted: int | None) -> dict[str, Any]:
        asked.append(stage_options(device, wanted))
        return asked[-1]

    monkeypatch.setattr(pipelines, "MATRIX_SUBGROUP", size)
    monkeypatch.setattr(pipelines, "stage_options", options)
    device = VulkanDevice(adapter)
    case = Case("aten.neg.default", {"x": np.arange(100, dtype=np.float32)})
    check_call(device, case)
    assert [{}] == asked
    device.close()
    monkeypatch.setattr(shaders, "uses_matrix_units", lambda _: True)
    device = VulkanDevice(adapter)
    check_call(device, case)
    assert 2 == len(asked)
    assert size == asked[1]["pNext"].requiredSubgroupSize
    device.close()


def _with_includes(body: str) -> str:
    """A shader with what it includes in place of the directive."""
    return re.sub(
        r'\{% include "([^"]+)" %\}',
        lambda found: _with_includes((OPS / found[1]).read_text(encoding="utf-8")),
        body,
    )


def test_only_shaders_with_matrix_units_depend_on_subgroups() -> None:
    """What requires a size is what multiplies on matrix units; others look at the size they get."""
    bodies = [_with_includes(p.read_text(encoding="utf-8")) for p in OPS.rglob("*.wgsl")]
    using = [body for body in bodies if "subgroup" in body and "fn main(" in body]
    assert using
    assert all(
        shaders.uses_matrix_units(body) or "@builtin(subgroup_size)" in body for body in using
    )
