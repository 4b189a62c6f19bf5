// Exact float32 quantization; the reference is nybble.ops.arithmetic.

// Keeps a product apart from the sum it feeds: contracted to one fused operation, codes change.
fn guard(product: f32) -> f32 {
  return bitcast<f32>(bitcast<u32>(product) ^ params.zero);
}

fn guards(products: vec4<f32>) -> vec4<f32> {
  return bitcast<vec4<f32>>(bitcast<vec4<u32>>(products) ^ vec4<u32>(params.zero));
}

// Codes of values already multiplied by 1/scale; NaN stands for zero. Adding 1.5 * 2^23 rounds half to
// even, up to 2^22, and leaves an integer whose low byte is the code: quicker than a conversion on CPUs.
fn codes_of(scaled: vec4<f32>, zero_point: i32, code_min: i32, code_max: i32) -> u32 {
  let low = vec4<f32>(f32(code_min - zero_point));
  let high = vec4<f32>(f32(code_max - zero_point));
  let nan = (bitcast<vec4<u32>>(scaled) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
  let bounded = clamp(select(scaled, vec4<f32>(), nan), low, high);
  return pack4xI8(bitcast<vec4<i32>>(bounded + vec4<f32>(12582912.0)) + zero_point);
}
