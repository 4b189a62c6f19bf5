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

// The code of a value already multiplied by 1/scale. NaN stands for zero.
fn code_of(scaled: f32, zero_point: i32, code_min: i32, code_max: i32) -> i32 {
  let finite = select(scaled, 0.0, is_nan(scaled));
  let low = f32(code_min - zero_point);
  let high = f32(code_max - zero_point);
  return clamp(i32(round(clamp(finite, low, high))) + zero_point, code_min, code_max);
}

fn codes_of(scaled: vec4<f32>, zero_point: i32, code_min: i32, code_max: i32) -> u32 {
  return pack4xI8(vec4<i32>(
    code_of(scaled.x, zero_point, code_min, code_max),
    code_of(scaled.y, zero_point, code_min, code_max),
    code_of(scaled.z, zero_point, code_min, code_max),
    code_of(scaled.w, zero_point, code_min, code_max)));
}
