"""Runs shaders given as text on the adapters of this machine."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from nybble.contract import DTYPES, ROW_MAJOR
from nybble.devices import Device, devices, open_device
from nybble.graph import TensorSpec, Value
from nybble.plan import Dispatch, Place, Plan, Region

Words = npt.NDArray[np.uint32]
Run = Callable[[str, Words], Words]

ADAPTERS = [info.name for info in devices() if info.name != "host"]
LANES = 64
HEADER = """
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
struct Params { zero: u32, grid_width: u32, padding_0: u32, padding_1: u32, };
@group(0) @binding(2) var<uniform> params: Params;
"""
MAIN = f"""
@compute @workgroup_size({LANES})
fn main(@builtin(local_invocation_index) lane: u32) {{
  out[lane] = result(lane);
}}
"""


def _plan(shader: str, count: int) -> Plan:
    given = Value("x", DTYPES["int32"], (count,))
    made = Value("out", DTYPES["int32"], (LANES,))
    size = -(-count // 4) * 16
    step = Dispatch(
        call=0, label="shader", shader=shader, reads=(Region(1, 0, size),),
        writes=(Region(2, 0, 4 * LANES),), params=Region(0, 0, 16), grid=(1, 1, 1),
        bytes_moved=0, operations=0,
    )  # fmt: skip
    return Plan(
        name="shader", calls=(), buffers=(256, size, 4 * LANES), constants=(), params=bytes(256),
        steps=(step,), inputs=(Place(given, ROW_MAJOR, 1),), outputs=(Place(made, ROW_MAJOR, 2),),
        input_specs=(TensorSpec("x", "int32", given.shape),),
        output_specs=(TensorSpec("out", "int32", made.shape),), places=((),),
    )  # fmt: skip


@pytest.fixture(params=ADAPTERS or ["none"])
def device(request: pytest.FixtureRequest) -> Device:
    """Each adapter, opened: WebGPU's own compilers and ours are held to the same results."""
    if request.param == "none":
        pytest.fail("no adapter: run `make test`, which installs a software one")
    return open_device(request.param)


@pytest.fixture
def run(device: Device) -> Run:
    """``run(text, words)``: ``result(i)``, which the text declares, for i from 0 to 63.

    The text reads ``words`` as ``x``.
    """

    def run_shader(text: str, words: Words) -> Words:
        shader = text if "@compute" in text else text + MAIN
        executable = device.prepare(_plan(HEADER + shader, len(words)))
        try:
            return executable.run([words.view(np.int32)])[0].view(np.uint32)
        finally:
            executable.close()

    return run_shader
