"""The 4-bit references: the layout's formula, a slow packer, and special values by hand."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import nybble.ops  # noqa: F401  (declares the operators)
from nybble.contract import DTYPES, REGISTRY, Array
from nybble.ops.linear_q4.layout import W_4X8, W_4X8_HIGH_FIRST

RNG = np.random.default_rng(44)
UINT8 = DTYPES["uint8"]


def reference(name: str, *values: Any) -> Any:
    """The result of an operator's reference."""
    return REGISTRY[name].reference(*values)


def floats(*shape: int) -> Array:
    """Standard normal float32 values."""
    return RNG.normal(0, 1, shape).astype(np.float32)


def packed_bytes(*shape: int) -> Array:
    """Random pairs of codes."""
    return RNG.integers(0, 256, shape, dtype=np.uint8)


def scales_of(*shape: int) -> Array:
    """Random positive scales."""
    return RNG.uniform(0.01, 0.2, shape).astype(np.float32)


@pytest.mark.parametrize("layout", [W_4X8, W_4X8_HIGH_FIRST])
@pytest.mark.parametrize("shape", [(8, 2), (5, 3), (20, 6), (1, 1), (0, 4), (3, 0), (37, 11)])
def test_w4x8_keeps_every_nibble(layout: Any, shape: tuple[int, int]) -> None:
    """Packing and unpacking gives the bytes back, padding nibbles of odd rows included."""
    codes = packed_bytes(*shape)
    words = layout.pack(codes, {})
    assert layout.words(UINT8, shape, {}) == words.size
    np.testing.assert_array_equal(codes, layout.unpack(words, UINT8, shape))


def test_w4x8_words_are_the_specified_ones() -> None:
    """Code = row gives the example's words; rows beyond the matrix hold code 8."""
    rows = np.repeat(np.arange(8, dtype=np.uint8)[:, None] * 17, 2, axis=1)
    assert [0x10101010, 0x32323232, 0x54545454, 0x76767676] == W_4X8.pack(rows, {}).tolist()
    half = W_4X8.pack(rows[:4], {}).tolist()
    assert [0x10101010, 0x32323232, 0x88888888, 0x88888888] == half


def test_w4x8_places_every_code_where_the_formula_says() -> None:
    """Block, word and shift of each (row, column), read one by one, for odd sizes too."""
    codes = packed_bytes(21, 7)
    words = W_4X8.pack(codes, {})
    for n in range(24):
        for k in range(16):
            word = words[4 * (k // 4 * 3 + n // 8) + n // 2 % 4]
            found = int(word) >> (8 * (k % 4) + 4 * (n % 2)) & 15
            inside = n < 21 and k < 14
            expected = int(codes[n, k // 2]) >> (4 * (k % 2)) & 15 if inside else 8
            assert expected == found


def slow_code(latent: float, scale: float) -> int:
    """One code by rational arithmetic: the quotient rounded to 24 bits, then half to even."""
    if math.isnan(latent) or math.isnan(scale) or scale == 0 or abs(scale) < 2.0**-126:
        return 8
    if math.isinf(scale) or abs(latent) < 2.0**-126:
        return 8
    if math.isinf(latent):
        return 15 if (latent > 0) == (scale > 0) else 0
    exact = Fraction(latent) / Fraction(scale)
    if abs(exact) >= 16:
        return 15 if exact > 0 else 0
    if abs(exact) < Fraction(1, 4):
        return 8
    exponent = math.floor(math.log2(abs(float(exact))))
    while abs(exact) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while abs(exact) < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** (exponent - 23)
    return min(7, max(-8, round(round(exact / unit) * unit))) + 8


def slow_pack(latent: Array, scales: Array, group_size: int) -> Array:
    """Flat bytes, nibble by nibble."""
    rows, columns = latent.shape
    result = np.zeros((rows, -(-columns // 2)), np.uint8)
    for n in range(rows):
        for k in range(columns):
            code = slow_code(float(latent[n, k]), float(scales[k // group_size, n]))
            result[n, k // 2] |= code << (4 * (k % 2))
    return result


def beside(values: Array) -> Array:
    """Values, one ulp below and one above them in turn."""
    flat = values.reshape(-1)
    down = np.nextafter(flat, np.float32(-np.inf))
    up = np.nextafter(flat, np.float32(np.inf))
    return np.choose(np.arange(flat.size) % 3, [flat, down, up]).reshape(values.shape)


def ties(n: int, k: int, group_size: int, scale: float) -> tuple[Array, Array]:
    """Latents on half steps of random scales and one ulp beside them."""
    scales = (scale * RNG.uniform(1, 2, (-(-k // group_size), n))).astype(np.float32)
    scales *= RNG.choice(np.array([-1, 1], np.float32), scales.shape)
    each = np.repeat(scales, group_size, axis=0)[:k].T
    halves = (RNG.integers(-10, 10, (n, k)) + 0.5).astype(np.float32)
    return beside(halves * each), scales


SPECIAL = np.array(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, 3.4e38, -3.4e38, 1e-40, 2.0**-126, 1.5, -8.5, 6.5],
    np.float32,
)  # fmt: skip


@pytest.mark.parametrize(
    ("latent", "scales", "group_size"),
    [
        (floats(8, 32), scales_of(1, 8), 32),
        (floats(12, 64), scales_of(4, 12), 16),
        (floats(13, 37), scales_of(8, 15), 5),
        (floats(12, 32), np.zeros((1, 12), np.float32), 32),
        (*ties(24, 48, 16, 0.037), 16),
        (*ties(11, 37, 5, 1.0), 5),
        (*ties(8, 32, 8, 1e-36), 8),
        (*ties(8, 32, 8, 1e36), 8),
        (np.tile(SPECIAL, (5, 1)), np.array([[1.0, 0.0, np.nan, np.inf, -1e-30]], np.float32), 12),
        (floats(1, 1), scales_of(1, 1), 1),
    ],
    ids=[
        "one group", "several groups", "odd columns", "zero scale", "ties", "odd ties", "tiny",
        "huge", "special", "one",
    ],
)  # fmt: skip
def test_requant_equals_a_rational_packer(latent: Array, scales: Array, group_size: int) -> None:
    """q4gsw_requant gives the bytes of a packer that computes with fractions."""
    found = reference("et_vk.q4gsw_requant.default", latent, scales, group_size)
    np.testing.assert_array_equal(slow_pack(latent, scales, group_size), found)


def test_requant_of_odd_rows_leaves_the_last_nibble_zero() -> None:
    """The nibble that fills the last byte is a raw 0, not the code of zero."""
    found = reference("et_vk.q4gsw_requant.default", floats(3, 5), scales_of(1, 3), 8)
    np.testing.assert_array_equal(np.zeros(3, np.uint8), found[:, -1] >> 4)


def test_requant_gives_back_dequantized_codes() -> None:
    """Codes survive dequantize and requant."""
    codes, scales = packed_bytes(16, 16), scales_of(4, 16)
    matrix = reference(
        "et_vk.linear_q4gsw.default", np.eye(32, dtype=np.float32), codes, scales, 8, None
    )
    found = reference("et_vk.q4gsw_requant.default", np.ascontiguousarray(matrix.T), scales, 8)
    np.testing.assert_array_equal(codes, found)


def test_dq8ca_uses_the_exact_quotient_and_the_zero_point() -> None:
    """Inputs are quantized as stated: rows of one value each, by hand."""
    x = np.array([0.05, -0.15, 0.25, 100.0, -100.0], np.float32)
    codes = np.array([[0x99, 0x99, 0x99]], np.uint8)
    ones, sums = np.ones((1, 1), np.float32), np.zeros((1, 8), np.int32)
    scale, zero = np.array([0.1], np.float32), np.array([3], np.int8)
    name = "et_vk.linear_dq8ca_q4gsw.default"
    found = [
        float(reference(name, row[None], scale, zero, codes, sums, ones, 8, None)[0, 0])
        for row in np.diag(x)
    ]
    steps = [0, -2, 2, 124, -131]
    np.testing.assert_allclose(np.float32(0.1) * np.array(steps, np.float32), found, rtol=1e-6)


def test_choose_qparams_follows_the_runtimes_in_their_special_rows() -> None:
    """An all-zero row has scale 0.1 and zero point 127; rows below 6.1e-5 have that scale."""
    x = np.zeros((3, 4), np.float32)
    x[1, 0], x[2, 0] = 1e-6, -1e-6
    arguments = ("ASYMMETRIC", (1, 4), None, -128, 127, None, None, None, False)
    scales, zeros = reference("torchao.choose_qparams_affine.default", x, *arguments)
    small = np.float32(6.1e-5)
    np.testing.assert_array_equal(np.array([0.1, small, small], np.float32), scales)
    np.testing.assert_array_equal(np.array([127, -128, 127], np.int8), zeros)


def test_embedding_gives_zeros_for_tokens_outside_the_table() -> None:
    """Tokens -1 and v are rows of zeros, the others their dequantized rows."""
    codes, scales = packed_bytes(5, 4), scales_of(5, 1)
    tokens = np.array([-1, 0, 4, 5], np.int32)
    found = reference("et_vk.embedding_q4gsw.default", codes, scales, 8, tokens, True)
    low = (codes[[0, 4], :] & 15).astype(np.float32) - 8
    np.testing.assert_array_equal(np.zeros((2, 8), np.float32), found[[0, 3]])
    np.testing.assert_array_equal(low * scales[[0, 4]], found[[1, 2], 0::2])
