{% include "std/quantize.wgsl" %}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
  if (word < params.words) {
    let quads = (params.channels + 3u) / 4u;
    let row = word / quads;
    let channel = (word % quads) * 4u;
    let start = (row / params.plane * params.channels + channel) * params.plane + row % params.plane;
    var scaled = vec4<f32>();
    for (var i = 0u; i < min(4u, params.channels - channel); i++) {
      scaled[i] = x[start + i * params.plane] * params.inverse;
    }
    out[word] = codes_of(scaled, params.zero_point, params.code_min, params.code_max);
  }
}
