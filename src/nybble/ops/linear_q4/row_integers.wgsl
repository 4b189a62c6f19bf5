// Inputs of one row as integers of 22 bits over a power of two, in three bytes: packed dot
// products of them with codes are exact.
{% include "std/dot4.wgsl" %}

fn total(v: vec4<i32>) -> i32 {
  return v.x + v.y + v.z + v.w;
}

// The magnitude, as bits, of the largest of four inputs; bits order as magnitudes do.
fn largest(inputs: vec4<f32>) -> u32 {
  let v = bitcast<vec4<u32>>(inputs) & vec4<u32>(0x7fffffffu);
  return max(max(v.x, v.y), max(v.z, v.w));
}

// The bits of the exponent of 2^(e - 20) for values below 2^(e + 1). It and its inverse stay
// normal numbers.
fn exponent_for(size: u32) -> u32 {
  return u32(clamp(i32(size >> 23u) - 20, 2, 252));
}

fn inverse_of(exponent: u32) -> f32 {
  return bitcast<f32>((254u - exponent) << 23u);
}

// Four inputs over the power of two, rounded to even: added to 1.5 * 2^23 they lose their fraction.
fn integers(v: vec4<f32>, inverse: f32) -> vec4<i32> {
  let sums = fma(v, vec4<f32>(inverse), vec4<f32>(12582912.0));
  return min(bitcast<vec4<i32>>(sums) - vec4<i32>(0x4b400000), vec4<i32>(2097151));
}

// The high, middle and low bytes of four integers, of 8, 7 and 7 bits; the high ones have the sign.
fn three_bytes(n: vec4<i32>) -> vec3<u32> {
  let v = bitcast<vec4<u32>>(n);
  return vec3<u32>(
    ((v.x >> 14u) & 0xffu) | ((v.y >> 6u) & 0xff00u)
      | ((v.z << 2u) & 0xff0000u) | ((v.w << 10u) & 0xff000000u),
    ((v.x >> 7u) & 0x7fu) | ((v.y << 1u) & 0x7f00u)
      | ((v.z << 9u) & 0x7f0000u) | ((v.w << 17u) & 0x7f000000u),
    (v.x & 0x7fu) | ((v.y << 8u) & 0x7f00u)
      | ((v.z << 16u) & 0x7f0000u) | ((v.w << 24u) & 0x7f000000u));
}

// By how much four integers exceed 2^16, all in all; those of zeros need not.
fn excess_of(v: vec4<f32>, n: vec4<i32>) -> i32 {
  return total(abs(n) - select(vec4<i32>(), vec4<i32>(65536), v != vec4<f32>()));
}

// What the excess of a unit must reach so that those beside the largest keep 16 bits on average;
// the largest keeps 16 too, which is to be asked only of tiny ones, whose power of two is clamped.
fn excess_needed(size: u32, inverse: f32) -> i32 {
  return max(i32(round(bitcast<f32>(size) * inverse)) - 65536, 0);
}

fn accumulate(v: vec4<f32>, c: vec4<f32>, sum: f32) -> f32 {
  return fma(v.w, c.w, fma(v.z, c.z, fma(v.y, c.y, fma(v.x, c.x, sum))));
}

// Two words, four outputs, by four inputs in float32.
fn accumulate_words(v: vec4<f32>, a: u32, b: u32, sums: vec4<f32>) -> vec4<f32> {
  return vec4<f32>(
    accumulate(v, low_codes(a), sums.x), accumulate(v, high_codes(a), sums.y),
    accumulate(v, low_codes(b), sums.z), accumulate(v, high_codes(b), sums.w));
}
