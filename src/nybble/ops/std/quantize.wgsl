// Exact float32 quantization; the reference is nybble.ops.arithmetic.

// Keeps a product apart from the sum it feeds: contracted to one fused operation, codes change.
fn guard(product: f32) -> f32 {
  return bitcast<f32>(bitcast<u32>(product) ^ params.zero);
}

fn guards(products: vec4<f32>) -> vec4<f32> {
  return bitcast<vec4<f32>>(bitcast<vec4<u32>>(products) ^ vec4<u32>(params.zero));
}

fn is_nan(value: f32) -> bool {
  return (bitcast<u32>(value) & 0x7fffffffu) > 0x7f800000u;
}

// Rounds half to even: adding 1.5 * 2^23 leaves the integer in the low bits. Exact for |value| up
// to 2^22, and quicker on CPU adapters than a conversion, which must saturate.
fn round_to_i32(value: f32) -> i32 {
  return bitcast<i32>(value + 12582912.0) - 0x4b400000;
}

// The code of a value already multiplied by 1/scale. NaN stands for zero.
fn code_of(scaled: f32, zero_point: i32, code_min: i32, code_max: i32) -> i32 {
  let finite = select(scaled, 0.0, is_nan(scaled));
  let low = f32(code_min - zero_point);
  let high = f32(code_max - zero_point);
  return round_to_i32(clamp(finite, low, high)) + zero_point;
}

// The same for four values; pack4xI8 keeps low bytes, and that of 1.5 * 2^23 is zero.
fn codes_of(scaled: vec4<f32>, zero_point: i32, code_min: i32, code_max: i32) -> u32 {
  let low = vec4<f32>(f32(code_min - zero_point));
  let high = vec4<f32>(f32(code_max - zero_point));
  let nan = (bitcast<vec4<u32>>(scaled) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
  let bounded = clamp(select(scaled, vec4<f32>(), nan), low, high);
  return pack4xI8(bitcast<vec4<i32>>(bounded + vec4<f32>(12582912.0)) + zero_point);
}
