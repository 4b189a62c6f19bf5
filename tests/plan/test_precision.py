"""Which kernels of less precision are chosen, and what they are compared with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import nybble.ops  # noqa: F401  (declares the operators)
from nybble.contract import REGISTRY, Kernel
from nybble.graph import Call, single_call
from nybble.plan import Capabilities
from nybble.plan.choose import precision_of, viable_kernels
from nybble.testing import compare

PLAIN = Capabilities(max_workgroup_bytes=49152, max_threads=1024)
UNITS = replace(PLAIN, matrix_units=("bf16xbf16->f32 16x16x16",))


def outer_call(rows: int) -> Call:
    """A gradient of weights over so many rows."""
    arguments = {"d_out": np.zeros((rows, 8), np.float32), "x": np.zeros((rows, 12), np.float32)}
    return single_call(REGISTRY["et_vk.linear_dW.default"], arguments)[0].calls[0]


@pytest.mark.parametrize(
    ("device", "rows", "expected"),
    [
        (UNITS, 17, ("matrix.wgsl", "float16")),
        (UNITS, 16, ("tiled.wgsl", "float32")),
        (PLAIN, 17, ("tiled.wgsl", "float32")),
        (replace(UNITS, precision="float32"), 17, ("tiled.wgsl", "float32")),
    ],
)
def test_matrix_units_multiply_many_rows_unless_float32_is_asked_for(
    device: Capabilities, rows: int, expected: tuple[str, str]
) -> None:
    """The kernel of less precision needs the units, rows enough, and leave to be used."""
    call = outer_call(rows)
    first = viable_kernels(call, device)[0]
    assert isinstance(first, Kernel)
    assert expected == (first.shader, precision_of(call, device))


def test_a_result_is_held_to_its_kernels_precision() -> None:
    """An error of 5e-4 is wrong in float32 and right in float16; one of 2e-3 is wrong in both."""
    one = np.ones(8, np.float32)
    near, far = one * np.float32(1.0005), one * np.float32(1.002)
    assert compare(one, near, exact=False) is not None
    assert compare(one, near, exact=False, precision="float16") is None
    assert compare(one, far, exact=False, precision="float16") is not None
