"""The kernels for matrix units, with loops in place of the units, on this machine's adapters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from imitate_matrix_units import imitated
from nybble.contract import REGISTRY, ROW_MAJOR, Kernel
from nybble.devices import Device, devices, open_device
from nybble.graph import Call, TensorSpec, Value, single_call
from nybble.plan import Capabilities, Dispatch, HostCall, Place, Plan, Region, make_plan
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
    # In the last row, which depths beyond it repeat where they are not zero.
    values[-1, 1] = np.inf
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


def _weight(n: int, k: int, group: int) -> dict[str, Any]:
    scales = _scales(-(-k // group) + 1, n)
    # No input belongs to a group after the last.
    scales[-1] = np.nan
    return {"weight": _bytes(n, -(-k // 2)), "scales": scales, "group_size": group}


def _linear_float(rows: int, n: int, k: int) -> dict[str, Any]:
    arguments = _linear_q8(rows, n, k)
    for name in ("scale_out", "zero_point_out", "activation"):
        del arguments[name]
    return arguments


CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "fixed point, in parts": (
        "nybble.linear_fixed_q4.default",
        _fixed(134, 132, 8, 64, 2, high_first=False),
        "fixed_product.wgsl",
    ),
    "fixed point, one group": (
        "nybble.linear_fixed_q4.default",
        _fixed(3, 260, 2, 1000, 1, high_first=True),
        "fixed_product.wgsl",
    ),
    "fixed point, parts of few rows": (
        "nybble.linear_fixed_q4.default",
        _fixed(3, 100, 8, 32, 2, high_first=False),
        "fixed_product.wgsl",
    ),
    "fixed point, large tile": (
        "nybble.linear_fixed_q4.default",
        _fixed(150, 132, 12, 96, 2, high_first=False),
        "fixed_product.wgsl",
    ),
    "forward": (
        "et_vk.linear_q4gsw.default",
        {"x": _holed(_floats(131, 96)), **_weight(72, 96, 32), "bias": _floats(72)},
        "matrix.wgsl",
    ),
    "backward": (
        "et_vk.linear_q4gsw_backward.default",
        {"d_out": _holed(_floats(131, 72)), **_weight(72, 96, 32)},
        "matrix.wgsl",
    ),
    "gradient of weights": (
        "et_vk.linear_dW.default",
        {"d_out": _holed(_floats(35, 132)), "x": _holed(_floats(35, 72))},
        "matrix.wgsl",
    ),
    "forward, large tile": (
        "et_vk.linear_q4gsw.default",
        {"x": _holed(_floats(67, 100)), **_weight(200, 100, 20)},
        "matrix.wgsl",
    ),
    "backward, large tile": (
        "et_vk.linear_q4gsw_backward.default",
        {"d_out": _holed(_floats(67, 72)), **_weight(72, 200, 40)},
        "matrix.wgsl",
    ),
    "forward, nothing whole": (
        "et_vk.linear_q4gsw.default",
        {"x": _holed(_floats(67, 90)), **_weight(70, 90, 5), "bias": _floats(70)},
        "matrix.wgsl",
    ),
    "backward, nothing whole": (
        "et_vk.linear_q4gsw_backward.default",
        {"d_out": _holed(_floats(67, 70)), **_weight(70, 91, 5)},
        "matrix.wgsl",
    ),
    "gradient of weights, nothing whole": (
        "et_vk.linear_dW.default",
        {"d_out": _holed(_floats(35, 67)), "x": _floats(35, 91)},
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
        _linear_q8(131, 73, 208),
        "rows_matrix.wgsl",
    ),
    "int8 rows, largest tile": (
        "et_vk.q8ta_linear.default",
        _linear_q8(130, 133, 144),
        "rows_matrix.wgsl",
    ),
    "int8 rows, floats": (
        "et_vk.linear_q8ta_q8csw.default",
        _linear_float(37, 41, 144),
        "rows_matrix.wgsl",
    ),
    "int8 images, whole vectors": (
        "et_vk.q8ta_conv2d.default",
        {**_image(48, 36), "weight": _codes(36, 288), "kernel": (2, 3), "dilation": (2, 2)},
        "rows_matrix.wgsl",
    ),
    "int8 images": ("et_vk.q8ta_conv2d.default", _image(36, 36), "rows_matrix.wgsl"),
}
_FORCED: dict[str, dict[str, Any]] = {
    "fixed point, large tile": {"TILE_M": 128},
    "forward, large tile": {"TILE_N": 128, "WIDE": True},
    "backward, large tile": {"TILE_N": 128, "WIDE": True},
    "int8 rows, large tile": {"TILE_M": 64, "STEP": 4, "WIDE": True},
    "int8 rows, largest tile": {"TILE_M": 128, "STEP": 4, "WIDE": True},
}
"""Constants of the kernel to take, whatever its condition says of the size."""
_ROOM = 128 * 256
"""Words after the results: more than a tile's rows have in any case."""


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


def _imitated_steps(step: Dispatch | HostCall) -> tuple[Dispatch | HostCall, ...]:
    """A kernel for matrix units without them, and its first workgroup once more.

    What that one writes outside its own part, no other workgroup writes again.
    """
    if not isinstance(step, Dispatch) or "subgroupMatrix" not in step.shader:
        return (step,)
    whole = replace(step, shader=imitated(step.shader))
    return whole, replace(whole, grid=(1, 1, 1))


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
    steps = tuple(part for step in plan.steps for part in _imitated_steps(step))
    assert len(steps) > len(plan.steps)
    return replace(plan, steps=steps), kernel, inputs


def _with_room(plan: Plan) -> Plan:
    """With words after the results, which one more input, the first, fills with the results."""
    results = plan.outputs[0]
    value = Value("results and room", results.value.dtype, (results.nbytes // 4 + _ROOM,))
    place, spec = Place(value, ROW_MAJOR, results.buffer), TensorSpec("", "float32", value.shape)

    def widened(region: Region) -> Region:
        room = 4 * _ROOM if region.buffer == results.buffer else 0
        return replace(region, size=region.size + room)

    sizes = list(plan.buffers)
    sizes[results.buffer] += 4 * _ROOM
    return replace(
        plan,
        buffers=tuple(sizes),
        steps=tuple(
            replace(step, writes=tuple(map(widened, step.writes)))
            if isinstance(step, Dispatch)
            else step
            for step in plan.steps
        ),
        inputs=(place, *plan.inputs),
        outputs=(place,),
        input_specs=(spec, *plan.input_specs),
        output_specs=(spec,),
    )


def _run(device: Device, plan: Plan, inputs: list[Any]) -> Any:
    """The results of a plan that has one; float ones with room behind them, which is left alone."""
    results = plan.outputs[0].value
    if results.dtype.name == "float32":
        plan = _with_room(plan)
        # First, since the results may lie where another input was.
        inputs = [np.full(plan.outputs[0].value.shape, 7.25, np.float32), *inputs]
    executable = device.prepare(plan)
    try:
        (actual,) = executable.run(inputs)
    finally:
        executable.close()
    if results.dtype.name == "float32":
        actual, room = actual[:-_ROOM], actual[-_ROOM:]
        assert {7.25} == set(room.tolist())
    return actual.reshape(results.shape)


@pytest.mark.slow
@pytest.mark.device
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("adapter", [name for name in ADAPTERS if name.startswith("vulkan")])
def test_a_kernel_for_matrix_units_equals_the_reference(adapter: str, case: str) -> None:
    """Tiles, tails, parts, scales and the repair of NaN are right, whatever multiplies.

    Nothing is written beyond the results.
    """
    device = open_device(adapter)
    plan, kernel, inputs = _imitated_plan(case, device)
    needed = kernel.constants.get("TILE_M") == 128 and kernel.shader == "fixed_product.wgsl"
    # What a processor calls its workgroups' memory is as large as any other.
    if needed and not device.capabilities.software:
        room = device.capabilities.max_workgroup_bytes
        if room < 49152:
            pytest.skip(f"the tile needs 48 KiB of workgroup memory, the adapter has {room} bytes")
    actual = _run(device, plan, inputs)

    name, arguments, _ = CASES[case]
    (expected,) = run_expected(name, arguments)
    assert compare(expected, actual, REGISTRY[name].exact, kernel.precision) is None


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
