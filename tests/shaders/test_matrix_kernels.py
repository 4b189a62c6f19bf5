"""The kernels for matrix units, with loops in place of the units, on this machine's adapters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from imitate_matrix_units import imitated
from nybble.contract import REGISTRY, Kernel
from nybble.devices import Device, devices, open_device
from nybble.graph import Call, single_call
from nybble.plan import Capabilities, Dispatch, Plan, make_plan
from nybble.plan.choose import why_unviable
from nybble.testing import compare, run_expected

UNITS = ("i8xi8->i32 16x16x32", "bf16xbf16->f32 16x16x16")
ADAPTERS = [info.name for info in devices() if info.name != "host"]
_RNG = np.random.default_rng(0)


def _floats(*shape: int) -> Any:
    return _RNG.normal(0, 1, shape).astype(np.float32)


def _bytes(*shape: int) -> Any:
    return _RNG.integers(0, 256, shape, dtype=np.uint8)


def _codes(*shape: int) -> Any:
    return _RNG.integers(-128, 128, shape, dtype=np.int8)


def _scales(*shape: int) -> Any:
    return _RNG.uniform(0.01, 0.2, shape).astype(np.float32)


def _holed(values: Any) -> Any:
    """With infinities and a NaN, which the units' arithmetic loses."""
    values[0, 0], values[3, 5], values[3, 7], values[-1, -1] = np.inf, -np.inf, np.inf, np.nan
    # In the second strip of sixteen rows, whichever axis the rows are.
    values[20, 20], values[33, 55] = -np.inf, np.inf
    return values


def _fixed(
    rows: int, n: int, blocks: int, group: int, splits: int, *, high_first: bool
) -> dict[str, Any]:
    limbs = _codes(rows, blocks, 2, 32)
    limbs[..., 0, :] //= 2
    x_scales = np.exp2(_RNG.integers(-20, -10, (blocks, rows))).astype(np.float32)
    x_scales[1, 2] = np.nan
    return {
        "x": limbs,
        "x_scales": x_scales,
        "weight": _bytes(n, 16 * blocks),
        "scales": _scales(-(-32 * blocks // group), n + 3),
        "group_size": group,
        "splits": splits,
        "high_first": high_first,
    }


def _linear_q8(rows: int, n: int, k: int) -> dict[str, Any]:
    return {
        "x": _codes(rows, k),
        "scale_in": 0.02,
        "zero_point_in": 3,
        "weight": _codes(n, k),
        "weight_sums": np.zeros(n, np.int32),
        "weight_scales": _scales(n),
        "scale_out": 1.3,
        "zero_point_out": -5,
        "bias": _floats(n),
        "activation": "none",
    }


def _image(channels: int, n: int) -> dict[str, Any]:
    return {
        **_linear_q8(1, n, 9 * channels),
        "x": _codes(1, channels, 7, 6),
        "kernel": (3, 3),
        "stride": (2, 1),
        "padding": (1, 1),
        "dilation": (1, 1),
        "groups": 1,
    }


_WEIGHT = {"weight": _bytes(72, 48), "scales": _scales(3, 72), "group_size": 32}
CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "fixed point, in parts": (
        "nybble.linear_fixed_q4.default",
        _fixed(70, 132, 8, 64, 2, high_first=False),
        "fixed_product.wgsl",
    ),
    "fixed point, one group": (
        "nybble.linear_fixed_q4.default",
        _fixed(3, 260, 2, 1000, 1, high_first=True),
        "fixed_product.wgsl",
    ),
    "forward": (
        "et_vk.linear_q4gsw.default",
        {"x": _holed(_floats(67, 96)), **_WEIGHT, "bias": _floats(72)},
        "matrix.wgsl",
    ),
    "backward": (
        "et_vk.linear_q4gsw_backward.default",
        {"d_out": _holed(_floats(67, 72)), **_WEIGHT},
        "matrix.wgsl",
    ),
    "gradient of weights": (
        "et_vk.linear_dW.default",
        {"d_out": _holed(_floats(35, 68)), "x": _floats(35, 72)},
        "matrix.wgsl",
    ),
    "int8 rows": ("et_vk.q8ta_linear.default", _linear_q8(37, 41, 100), "rows_matrix.wgsl"),
    "int8 rows, many steps": (
        "et_vk.q8ta_linear.default",
        _linear_q8(37, 41, 300),
        "rows_matrix.wgsl",
    ),
    "int8 rows, large tile": (
        "et_vk.q8ta_linear.default",
        _linear_q8(67, 73, 208),
        "rows_matrix.wgsl",
    ),
    "int8 rows, largest tile": (
        "et_vk.q8ta_linear.default",
        _linear_q8(130, 133, 144),
        "rows_matrix.wgsl",
    ),
    "int8 images": ("et_vk.q8ta_conv2d.default", _image(36, 36), "rows_matrix.wgsl"),
}
_FORCED: dict[str, dict[str, Any]] = {
    "int8 rows, large tile": {"TILE_M": 64, "STEP": 4, "WIDE": True},
    "int8 rows, largest tile": {"TILE_M": 128, "STEP": 4, "WIDE": True},
}
"""Constants of the kernel to take, whatever its condition says of the size."""


def _kernel(call: Call, case: str, device: Capabilities) -> Kernel:
    forced = _FORCED.get(case, {})
    return next(
        kernel
        for kernel in call.operator.kernels
        if isinstance(kernel, Kernel)
        and kernel.shader == CASES[case][2]
        and forced.items() <= kernel.constants.items()
        and (forced or why_unviable(kernel, call, device) is None)
    )


def _imitated_plan(case: str, device: Device) -> tuple[Plan, Kernel, list[Any]]:
    """The plan of a case on a device that is taken for one with matrix units, and its inputs."""
    name, arguments, _ = CASES[case]
    constants = tuple(n for n in ("weight", "scales", "weight_scales", "bias") if n in arguments)
    graph, inputs = single_call(REGISTRY[name], arguments, constants)
    pretended = replace(
        device.capabilities, software=False, matrix_units=UNITS, max_workgroup_bytes=32768
    )
    kernel = _kernel(graph.calls[0], case, pretended)
    plan = make_plan(graph, pretended, forced={graph.calls[0]: kernel})
    steps = tuple(
        replace(step, shader=imitated(step.shader))
        if isinstance(step, Dispatch) and "subgroupMatrix" in step.shader
        else step
        for step in plan.steps
    )
    assert steps != plan.steps
    return replace(plan, steps=steps), kernel, inputs


@pytest.mark.slow
@pytest.mark.device
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("adapter", [name for name in ADAPTERS if name.startswith("vulkan")])
def test_a_kernel_for_matrix_units_equals_the_reference(adapter: str, case: str) -> None:
    """Tiles, tails, parts, scales and the repair of NaN are right, whatever multiplies."""
    device = open_device(adapter)
    plan, kernel, inputs = _imitated_plan(case, device)
    executable = device.prepare(plan)
    try:
        actual = executable.run(inputs)
    finally:
        executable.close()

    name, arguments, _ = CASES[case]
    exact, precision = REGISTRY[name].exact, kernel.precision
    pairs = zip(run_expected(name, arguments), actual, strict=True)
    assert [None] == [compare(one, other, exact, precision) for one, other in pairs]


@pytest.mark.device
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "adapter", [name for name in ADAPTERS if name.startswith(("webgpu", "dawn"))]
)
def test_a_kernel_for_matrix_units_is_the_language_of_browsers(adapter: str, case: str) -> None:
    """Apart from the units themselves, WebGPU's own compilers take the shaders."""
    device: Any = open_device(adapter)
    plan, _, _ = _imitated_plan(case, device)
    for step in plan.steps:
        if isinstance(step, Dispatch):
            device.handle.create_shader_module(code=step.shader)
