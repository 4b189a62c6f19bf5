// By its bits: compilers may take ``v != v`` for false, ``!(v < a)`` for ``v >= a``, and a select by
// a comparison for min or max, which drop a NaN.
fn is_nan_of(v: vec4<f32>) -> vec4<bool> {
  return (bitcast<vec4<u32>>(v) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
}
