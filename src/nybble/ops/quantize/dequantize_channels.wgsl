fn value_of(code: i32, element: u32) -> f32 {
  let channel = element / params.inner % params.channels;
$$ if "zero_points" in present
  return (f32(code) - f32(zero_points[channel])) * scales[channel];
$$ else
  return f32(code) * scales[channel];
$$ endif
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
  if (word < params.words) {
    let codes = unpack4xI8(x[word]);
    for (var i = 0u; i < min(4u, params.elements - word * 4u); i++) {
      out[word * 4u + i] = value_of(codes[i], word * 4u + i);
    }
  }
}
