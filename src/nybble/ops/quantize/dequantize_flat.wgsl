@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
  if (word < params.words) {
    out[word] = vec4<f32>(unpack4xI8(x[word]) - params.zero_point) * params.scale;
  }
}
