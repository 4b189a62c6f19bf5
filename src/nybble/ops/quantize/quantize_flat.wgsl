{% include "std/quantize.wgsl" %}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
  if (word < params.words) {
    out[word] = codes_of(
      x[word] * params.inverse, params.zero_point, params.code_min, params.code_max);
  }
}
