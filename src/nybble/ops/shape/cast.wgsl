// Toward zero and saturating; NaN becomes 0. Bounds by comparison: 2^31 - 1 is no float32.
fn integers_of(v: vec4<f32>) -> vec4<i32> {
  let number = (bitcast<vec4<u32>>(v) & vec4<u32>(0x7fffffffu)) <= vec4<u32>(0x7f800000u);
  let inside = clamp(select(vec4<f32>(), v, number), vec4<f32>(-2147483648.0), vec4<f32>(2147483520.0));
  return select(vec4<i32>(inside), vec4<i32>(2147483647), v >= vec4<f32>(2147483648.0));
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
  if (word < params.words) {
    let v = x[word];
    out[word] = {$ VALUE $};
  }
}
