from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nybble.contract import CHANNELS4, DTYPES, INT8, ROW_MAJOR, DType, Layout, constant_layout
from nybble.contract.annotations import Array

SHAPES = st.lists(st.integers(0, 6), max_size=5).map(tuple)
WITH_CHANNELS = st.lists(st.integers(0, 6), min_size=1, max_size=5).map(tuple)


def filled(shape: tuple[int, ...], dtype: DType) -> Array:
    """Distinct contents, as far as the type allows."""
    count = math.prod(shape)
    return (np.arange(count) * 37 % 251 - 120).astype(dtype.numpy).reshape(shape)


@given(SHAPES, st.sampled_from(list(DTYPES.values())))
def test_row_major_round_trip(shape: tuple[int, ...], dtype: DType) -> None:
    """Any array of any type comes back from row-major words."""
    data = filled(shape, dtype)
    words = ROW_MAJOR.pack(data, {})
    assert np.dtype(np.uint32) == words.dtype
    assert ROW_MAJOR.words(dtype, shape, {}) == words.size
    assert ROW_MAJOR.unpack is not None
    np.testing.assert_array_equal(data, ROW_MAJOR.unpack(words, dtype, shape), strict=True)


@given(WITH_CHANNELS)
def test_channels4_round_trip(shape: tuple[int, ...]) -> None:
    """Any int8 array of rank one or more comes back from channels-last words of four."""
    data = filled(shape, INT8)
    words = CHANNELS4.pack(data, {})
    assert CHANNELS4.words(INT8, shape, {}) == words.size
    assert CHANNELS4.unpack is not None
    np.testing.assert_array_equal(data, CHANNELS4.unpack(words, INT8, shape), strict=True)


@given(WITH_CHANNELS, st.integers(0, 255))
def test_channels4_padding_is_never_read(shape: tuple[int, ...], filler: int) -> None:
    """Unpacking ignores what lies in the padding lanes: kernels may leave anything there."""
    data = filled(shape, INT8)
    axis = 1 if len(shape) == 4 else len(shape) - 1
    rows = CHANNELS4.pack(data, {}).view(np.uint8).copy()
    lanes = -(-shape[axis] // 4) * 4
    if lanes:
        rows.reshape(-1, lanes)[:, shape[axis] :] = filler
    assert CHANNELS4.unpack is not None
    np.testing.assert_array_equal(data, CHANNELS4.unpack(rows.view(np.uint32), INT8, shape))


def test_channels4_keeps_channels_innermost() -> None:
    """An image's four channels of one position share a word; the last lane is the fifth's pad."""
    image = np.arange(10, dtype=np.int8).reshape(1, 5, 1, 2)
    expected = [[0, 2, 4, 6, 8, 0, 0, 0], [1, 3, 5, 7, 9, 0, 0, 0]]
    assert expected == CHANNELS4.pack(image, {}).view(np.int8).reshape(2, 8).tolist()


def test_row_major_bytes_are_padded_to_a_word() -> None:
    """Bytes lie four to a word, the last word zero-padded."""
    words = ROW_MAJOR.pack(np.array([1, 2, 3, 4, 5], np.int8), {})
    assert [0x04030201, 0x00000005] == words.tolist()


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
def test_strided_and_big_endian_arrays_pack_by_their_elements(dtype: str) -> None:
    """Packing follows logical order, whatever the strides."""
    data = filled((4, 6), DTYPES[dtype])
    np.testing.assert_array_equal(
        ROW_MAJOR.pack(np.ascontiguousarray(data.T), {}), ROW_MAJOR.pack(data.T, {})
    )


def test_constant_layout_measures_by_packing() -> None:
    """A kernel's own weight arrangement says its size without being told twice."""
    doubled = constant_layout("doubled", lambda data, names: np.repeat(data, names["times"]))
    names = {"times": 2}
    assert 3 == doubled.words(INT8, (5,), names)
    assert 3 == doubled.pack(np.ones(5, np.int8), names).size
    assert None is doubled.unpack


def test_layouts_are_equal_by_name() -> None:
    """Two kernels that declare a layout of one name mean the same one."""
    again = Layout("channels4", CHANNELS4.words, CHANNELS4.pack)
    assert CHANNELS4 == again
    assert hash(CHANNELS4) == hash(again)
    assert CHANNELS4 != ROW_MAJOR
    assert "channels4" == str(again)
