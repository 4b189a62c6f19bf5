fn code_at(element: u32) -> u32 {
  return (x[element / 4u] >> (8u * (element % 4u))) & 0xffu;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
  if (word < params.words) {
    let quads = (params.channels + 3u) / 4u;
    let row = word / quads;
    let channel = (word % quads) * 4u;
    let start = (row / params.plane * params.channels + channel) * params.plane + row % params.plane;
    var packed = 0u;
    for (var i = 0u; i < min(4u, params.channels - channel); i++) {
      packed |= code_at(start + i * params.plane) << (8u * i);
    }
    out[word] = packed;
  }
}
