from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nybble.contract import Kernel, f32, i32, u32
from nybble.contract.params import params_dtype, params_record, params_values


def kernel(**params: Any) -> Kernel:
    """A kernel with the given fields."""
    return Kernel("none.wgsl", grid=("1",), params=params)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(-(2**31), 2**31 - 1),
    st.floats(width=32, allow_nan=False),
)
def test_record_is_what_the_struct_says(words: int, zero_point: int, scale: float) -> None:
    """zero, grid_width, then the fields in declared order, little-endian, padded to 16 bytes."""
    made = kernel(words=u32("n"), zero_point=i32("z"), scale=f32("s"))
    values = params_values(made, {"n": words, "z": zero_point, "s": scale})
    expected = struct.pack("<IIIif12x", 0, 7, words, zero_point, scale)
    assert expected == params_record(made, values, 7)


@pytest.mark.parametrize(("fields", "size"), [(0, 16), (1, 16), (2, 16), (3, 32), (6, 32), (7, 48)])
def test_record_is_whole_vectors(fields: int, size: int) -> None:
    """A uniform record is a multiple of 16 bytes however many fields it has."""
    made = kernel(**{f"field_{i}": u32("1") for i in range(fields)})
    assert size == params_dtype(made).itemsize


@pytest.mark.parametrize(("param", "value"), [(u32("v"), -1), (u32("v"), 2**32), (i32("v"), 2**31)])
def test_value_beyond_its_field_is_refused(param: Any, value: int) -> None:
    """An integer that 32 bits cannot hold is never cut off."""
    made = kernel(field=param)
    with pytest.raises(OverflowError):
        params_record(made, params_values(made, {"v": value}), 0)


def test_bound_beyond_float32_is_infinite() -> None:
    """The largest double, which programs store for "no bound", becomes infinity silently."""
    made = kernel(high=f32("v"))
    record = params_record(made, {"high": 1.797e308}, 0)
    assert np.inf == np.frombuffer(record, params_dtype(made))["high"][0]
