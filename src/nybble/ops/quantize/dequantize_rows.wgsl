@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
  if (word < params.words) {
    let quads = (params.channels + 3u) / 4u;
    let row = word / quads;
    let channel = (word % quads) * 4u;
    let start = (row / params.plane * params.channels + channel) * params.plane + row % params.plane;
    let values = vec4<f32>(unpack4xI8(x[word]) - params.zero_point) * params.scale;
    for (var i = 0u; i < min(4u, params.channels - channel); i++) {
      out[start + i * params.plane] = values[i];
    }
  }
}
