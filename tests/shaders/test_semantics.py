"""What shaders compute: WGSL's meaning, on every adapter, whichever compiler it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from nybble.devices import Device

from .conftest import LANES, Run, Words

pytestmark = pytest.mark.device

_RNG = np.random.default_rng(5)
_BITS = _RNG.integers(0, 2**32, 2 * LANES, dtype=np.uint32)
_EDGES = np.array([0, 1, 31, 32, 33, 63, 2**31 - 1, 2**31, 2**32 - 1], np.uint32)
INTEGERS = np.concatenate(
    [np.resize(_EDGES, LANES), np.resize(_EDGES[::-1], LANES - 5), _EDGES[:5]]
)
FLOATS = np.resize(
    np.array(
        [0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 3.7, -3.7, 1e9, -1e9, 4e9, 5e9, -5e9, 1e30, -1e30],
        np.float32,
    ),
    2 * LANES,
).view(np.uint32)


@dataclass(frozen=True)
class Claim:
    """A shader, its input, and what it must give for lane i."""

    name: str
    text: str
    words: Words
    expected: Callable[[Words, Words], Any]


def i32(words: Any) -> Any:
    """The words as signed numbers."""
    return words.view(np.int32)


def f32(words: Words) -> Any:
    """The words as float32."""
    return words.view(np.float32)


def of(expression: str) -> str:
    """A shader that gives an expression of the words ``a`` and ``b``."""
    return f"fn result(i: u32) -> u32 {{ let a = x[i]; let b = x[i + 64u]; return {expression}; }}"


def _truncated(a: Words, b: Words) -> tuple[Any, Any]:
    """Quotient and remainder as WGSL has them, a divisor 0 taken for 7."""
    left, right = i32(a).astype(np.int64), np.where(i32(b) == 0, 7, i32(b)).astype(np.int64)
    quotient = np.abs(left) // np.abs(right) * np.sign(left) * np.sign(right)
    return quotient, left - quotient * right


def _saturated(values: Any, low: float, high: float) -> Any:
    bounded = np.clip(np.trunc(values.astype(np.float64)), low, high)
    return bounded.astype(np.int64).astype(np.uint32)


def _bytes(words: Words) -> Any:
    return words[:, None].view(np.int8).astype(np.int32)


_NONZERO = "select(bitcast<i32>(b), 7, b == 0u)"
CLAIMS = [
    Claim("shifts left count modulo 32", of("a << b"), INTEGERS, lambda a, b: a << (b & 31)),
    Claim("shifts right count modulo 32", of("a >> b"), INTEGERS, lambda a, b: a >> (b & 31)),
    Claim("signed shifts keep the sign", of("bitcast<u32>(bitcast<i32>(a) >> b)"), INTEGERS,
          lambda a, b: i32(a) >> i32(b & 31)),
    Claim("unsigned arithmetic wraps", of("a * b + a - b"), _BITS, lambda a, b: a * b + a - b),
    Claim("signed division goes toward zero",
          of(f"bitcast<u32>(bitcast<i32>(a) / {_NONZERO})"), _BITS,
          lambda a, b: _truncated(a, b)[0]),
    Claim("a signed remainder has the dividend's sign",
          of(f"bitcast<u32>(bitcast<i32>(a) % {_NONZERO})"), _BITS,
          lambda a, b: _truncated(a, b)[1]),
    Claim("a number over zero is itself, with remainder 0",
          of("a / (b & params.zero) + a % (b & params.zero)"), _BITS, lambda a, b: a),
    Claim("unsigned division and remainder", of("a / (b | 1u) * 3u + a % (b | 1u)"), _BITS,
          lambda a, b: a // (b | 1) * 3 + a % (b | 1)),
    Claim("comparisons of signed numbers", of("select(0u, 1u, bitcast<i32>(a) < bitcast<i32>(b))"),
          INTEGERS, lambda a, b: i32(a) < i32(b)),
    Claim("comparisons of unsigned numbers", of("select(0u, 1u, a < b)"), INTEGERS,
          lambda a, b: a < b),
    Claim("rounding takes ties to even", of("bitcast<u32>(round(bitcast<f32>(a)))"), FLOATS,
          lambda a, _: np.rint(f32(a)).view(np.uint32)),
    Claim("conversion to i32 saturates", of("bitcast<u32>(i32(bitcast<f32>(a)))"), FLOATS,
          lambda a, _: _saturated(f32(a), -(2**31), 2**31 - 128)),
    Claim("conversion to u32 saturates", of("u32(bitcast<f32>(a))"), FLOATS,
          lambda a, _: _saturated(f32(a), 0, 2**32 - 256)),
    Claim("conversion of integers to f32",
          of("bitcast<u32>(f32(a >> 8u)) ^ bitcast<u32>(f32(bitcast<i32>(b) >> 8u))"), _BITS,
          lambda a, b: (a >> 8).astype(np.float32).view(np.uint32)
          ^ (i32(b) >> 8).astype(np.float32).view(np.uint32)),
    Claim("bools become numbers and back", of("u32(bool(a)) + 2u * u32(!bool(b))"), INTEGERS,
          lambda a, b: (a != 0) + 2 * (b == 0)),
    Claim("min, max, clamp and abs of signed numbers",
          of("bitcast<u32>(clamp(min(bitcast<i32>(a), 9), -7, 5) + max(bitcast<i32>(b), 3)"
             " + abs(bitcast<i32>(a) | 1))"), _BITS,
          lambda a, b: np.clip(np.minimum(i32(a), 9), -7, 5) + np.maximum(i32(b), 3)
          + np.abs(i32(a) | 1)),
    Claim("packing and unpacking bytes",
          of("pack4xI8(unpack4xI8(a) + unpack4xI8(b)) ^ pack4xU8(unpack4xU8(a) * 3u)"), _BITS,
          lambda a, b: (_bytes(a) + _bytes(b)).astype(np.int8).view(np.uint32)[:, 0]
          ^ (_bytes(a) * 3).astype(np.int8).view(np.uint32)[:, 0]),
    Claim("unpacked bytes keep their sign",
          of("bitcast<u32>(unpack4xI8(a).y * 1000 + unpack4xI8(b).w) + unpack4xU8(a).z"), _BITS,
          lambda a, b: _bytes(a)[:, 1] * 1000 + _bytes(b)[:, 3] + (a >> 16 & 255)),
    Claim("bit fields", of("extractBits(a, b % 29u, 3u) + "
                           "bitcast<u32>(extractBits(bitcast<i32>(a), b % 25u, 7u))"), _BITS,
          lambda a, b: (a >> b % 29 & 7) + ((i32(a >> b % 25 << 25)) >> 25).view(np.uint32)),
    Claim("the highest set bit", of("firstLeadingBit(a) * 100u + countOneBits(b)"), INTEGERS,
          lambda a, b: np.array([int(v).bit_length() - 1 for v in a]) * 100
          + np.array([int(v).bit_count() for v in b])),
    Claim("literals take the other side's type", of("bitcast<u32>(2 * bitcast<f32>(a) + 1) + 3"),
          FLOATS, lambda a, _: (2 * f32(a) + 1).view(np.uint32) + 3),
]  # fmt: skip


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_an_expression_means_what_wgsl_says(run: Run, claim: Claim) -> None:
    """Integers wrap, shift and divide, floats round and convert as WGSL states."""
    with np.errstate(all="ignore"):
        wanted = np.asarray(claim.expected(claim.words[:LANES], claim.words[LANES:]))
    expected = wanted.astype(np.int64).astype(np.uint32)

    np.testing.assert_array_equal(expected, run(claim.text, claim.words))


def test_vectors_are_taken_apart_and_put_together(run: Run) -> None:
    """Swizzles, components by name and by index, and constructors of mixed parts agree."""
    text = """
    fn result(i: u32) -> u32 {
      let v = vec4<u32>(x[i], vec2<u32>(x[i + 1u], 7u), 5u);
      var w = v.wzyx;
      w[i % 4u] = 11u;
      w.y += v[i % 3u];
      let mixed = select(v, w, vec4<bool>(true, false, i % 2u == 0u, true)) * 3u;
      return mixed.x + mixed[1] * 5u + mixed.b * 25u + mixed.w * 125u;
    }"""
    expected = []
    for i in range(LANES):
        v = [int(_BITS[i]), int(_BITS[i + 1]), 7, 5]
        w = v[::-1]
        w[i % 4] = 11
        w[1] += v[i % 3]
        mixed = [w[0], v[1], w[2] if i % 2 == 0 else v[2], w[3]]
        expected.append(sum(3 * m * 5**j for j, m in enumerate(mixed)) % 2**32)

    assert expected == run(text, _BITS).tolist()


def test_matrices_multiply_by_columns(run: Run) -> None:
    """Products of matrices and vectors on either side, transposed and scaled."""
    text = """
    fn result(i: u32) -> u32 {
      let a = vec4<f32>(f32(i), 1.0, 2.0, 3.0);
      let m = mat4x4<f32>(a, a + 1.0, a * 2.0, vec4<f32>(4.0));
      let r = (m * a - a * m + transpose(m)[1] * 2.0) + (m * m)[2];
      return u32(r.x + 7.0 * r.y + 49.0 * r.z + 343.0 * r.w + 1000000.0);
    }"""
    expected = []
    for i in range(LANES):
        a = np.array([i, 1, 2, 3], np.float64)
        m = np.stack([a, a + 1, a * 2, a * 0 + 4]).T
        r = m @ a - a @ m + m.T[:, 1] * 2 + (m @ m)[:, 2]
        expected.append(int(r @ [1, 7, 49, 343] + 1000000))

    assert expected == run(text, _BITS).tolist()


STEPS = """
fn steps(start: u32) -> u32 {
  var n = start;
  var count = 0u;
  loop {
    if (n == 1u) { return count; }
    if (n % 2u == 0u) { n /= 2u; } else { n = 3u * n + 1u; }
    count++;
    if (count >= 100u) { break; }
  }
  return 1000u;
}
fn result(i: u32) -> u32 {
  var total = 0u;
  for (var j = 0u; j < 6u; j++) {
    if (j == 4u) { continue; } else if (i > 40u && j == 5u) { break; }
    var k = 0u;
    for (; k < i;) {
      if (k * j > 20u) { break; }
      k += 1u;
    }
    while (k > 3u) { k -= 3u; }
    total = total * 5u + k;
  }
  return total * 1000u + steps(i + 1u);
}"""


def test_control_flow_goes_where_it_says(run: Run) -> None:
    """Nested loops with break, continue and early return, and chains of else, are followed."""

    def steps(n: int) -> int:
        count = 0
        while n != 1 and count < 100:
            n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
        return count if n == 1 else 1000

    expected = []
    for i in range(LANES):
        total = 0
        for j in (0, 1, 2, 3, 5):
            if i > 40 and j == 5:
                break
            k = next((k for k in range(i) if k * j > 20), i)
            total = total * 5 + (k if k <= 3 else (k - 1) % 3 + 1)
        expected.append((total * 1000 + steps(i + 1)) % 2**32)

    assert expected == run(STEPS, _BITS).tolist()


def test_the_right_side_is_left_out_where_the_left_decides(run: Run) -> None:
    """``&&`` and ``||`` do not call what they need not: a call there would write."""
    text = """
    var<workgroup> calls: array<u32, 64>;
    fn noted(i: u32) -> bool { calls[i] += 1u; return true; }
    fn result(i: u32) -> u32 {
      calls[i] = 0u;
      let both = i % 2u == 0u && noted(i);
      let either = i % 3u == 0u || noted(i);
      let nested = i > 10u && (i > 20u || noted(i)) && noted(i);
      return calls[i] * 8u + u32(both) + 2u * u32(either) + 4u * u32(nested);
    }"""
    expected = [
        ((i % 2 == 0) + (i % 3 != 0) + (10 < i <= 20) + (i > 10)) * 8
        + (i % 2 == 0) + 2 + 4 * (i > 10)
        for i in range(LANES)
    ]  # fmt: skip

    assert expected == run(text, _BITS).tolist()


def test_structs_arrays_and_shared_memory_hold_what_is_put_in(run: Run) -> None:
    """Members, elements by variable index, nested arrays and values given across lanes."""
    text = """
    struct Pair { first: u32, rest: vec2<u32>, }
    const WIDTH = 4u;
    const DOUBLE = WIDTH * 2u;
    var<workgroup> tile: array<array<vec2<u32>, DOUBLE>, DOUBLE + 1u>;
    fn pair_of(a: u32, b: u32) -> Pair { return Pair(a, vec2<u32>(b, a ^ b)); }
    fn run_of(lane: u32) -> u32 {
      var local: array<u32, 5>;
      for (var j = 0u; j < 5u; j++) { local[j] = x[lane + j]; }
      var pair = pair_of(local[lane % 5u], 9u);
      pair.rest.y += 1u;
      tile[lane / DOUBLE][lane % DOUBLE] = pair.rest;
      workgroupBarrier();
      let other = tile[7u - lane / DOUBLE][lane % DOUBLE];
      return other.x + other.y + pair.first;
    }
    @compute @workgroup_size(64)
    fn main(@builtin(local_invocation_index) lane: u32) {
      out[lane] = run_of(lane);
    }"""
    first = [int(_BITS[i + i % 5]) for i in range(LANES)]
    expected = []
    for i in range(LANES):
        other = first[(7 - i // 8) * 8 + i % 8]
        expected.append((9 + (other ^ 9) + 1 + first[i]) % 2**32)

    assert expected == run(text, _BITS).tolist()


def test_a_packed_dot_product_is_of_signed_bytes(device: Device, run: Run) -> None:
    """``dot4I8Packed``, where the adapter has it, is exact at both ends of int8."""
    if not device.capabilities.packed_dot:
        pytest.skip("this adapter has no packed dot product; kernels then unpack")
    words = _BITS.copy()
    words[:3] = words[LANES : LANES + 3] = (0x80808080, 0x7F7F7F7F, 0x807F807F)
    left, right = _bytes(words[:LANES]), _bytes(words[LANES:])
    expected = np.sum(left * right, axis=1).astype(np.uint32)

    np.testing.assert_array_equal(expected, run(of("bitcast<u32>(dot4I8Packed(a, b))"), words))
