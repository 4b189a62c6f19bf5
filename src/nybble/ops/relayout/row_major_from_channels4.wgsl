fn code_at(element: u32) -> u32 {
  let position = element % params.plane;
  let image = element / params.plane;
  let channel = image % params.channels;
  let row = image / params.channels * params.plane + position;
  let quads = (params.channels + 3u) / 4u;
  return (x[row * quads + channel / 4u] >> (8u * (channel % 4u))) & 0xffu;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
  if (word < params.words) {
    var packed = 0u;
    for (var i = 0u; i < min(4u, params.elements - word * 4u); i++) {
      packed |= code_at(word * 4u + i) << (8u * i);
    }
    out[word] = packed;
  }
}
