{% include "std/quantize.wgsl" %}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
  if (word < params.words) {
    let value = vec4<f32>(unpack4xI8(x[word]) - params.zero_point_in) * params.scale_in;
    out[word] = codes_of(
      max(value, vec4<f32>()) * params.inverse,
      params.zero_point_out, params.code_min, params.code_max);
  }
}
