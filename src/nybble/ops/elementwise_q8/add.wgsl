{% include "std/quantize.wgsl" %}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
  if (word < params.words) {
    let first = vec4<f32>(unpack4xI8(a[word]) - params.zero_point_a) * params.scale_a;
    let second = vec4<f32>(unpack4xI8(b[word]) - params.zero_point_b) * params.scale_b * params.alpha;
    let sum = guards(first) + guards(second);
    out[word] = codes_of(
      sum * params.inverse, params.zero_point_out, params.code_min, params.code_max);
  }
}
