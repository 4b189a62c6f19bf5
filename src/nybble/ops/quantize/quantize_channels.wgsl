{% include "std/nan.wgsl" %}

// The code of a value already multiplied by 1/scale; NaN stands for zero. A zero point may be any
// integer, so the value's integer may need 33 bits: both are added as halves of 16 bits.
fn code_of(scaled: f32, zero_point: i32) -> i32 {
  let finite = select(scaled, 0.0, is_nan_of(vec4<f32>(scaled)).x);
  // Beyond 2^33 no zero point brings a value back.
  let bounded = clamp(finite, -8589934592.0, 8589934592.0);
  let high = trunc(bounded * 0.0000152587890625);
  let low = i32(round(bounded - high * 65536.0)) + (zero_point & 0xffff);
  // A sum of high halves beyond 4 decides alone.
  let halves = clamp(i32(high) + (zero_point >> 16u), -4, 4);
  return clamp(halves * 65536 + low, params.code_min, params.code_max);
}

fn code_at(element: u32) -> i32 {
  let channel = element / params.inner % params.channels;
$$ if "zero_points" in present
  let zero_point = zero_points[channel];
$$ else
  let zero_point = 0;
$$ endif
  return code_of(x[element] * scales[channel], zero_point);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
  if (word < params.words) {
    var codes = vec4<i32>();
    for (var i = 0u; i < min(4u, params.elements - word * 4u); i++) {
      codes[i] = code_at(word * 4u + i);
    }
    out[word] = pack4xI8(codes);
  }
}
