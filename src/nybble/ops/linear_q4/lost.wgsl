// Which sums are NaN, by their bits: a compiler may take comparisons of floats for never NaN.
fn lost(sums: vec4<f32>) -> vec4<bool> {
  return (bitcast<vec4<u32>>(sums) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
}
