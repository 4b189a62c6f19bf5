fn byte_of(element: u32) -> u32 {
  let row = element / params.row_bytes;
  let at = element % params.row_bytes;
  let word = x[(at / 2u * params.down + row / 8u) * 4u + row % 8u / 2u];
  let pair = (word >> (16u * (at % 2u) + 4u * (row % 2u))) & 0x0f0fu;
$$ if HIGH_FIRST
  return ((pair << 4u) | (pair >> 8u)) & 0xffu;
$$ else
  return (pair | (pair >> 4u)) & 0xffu;
$$ endif
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
  if (word < params.words) {
    var packed = 0u;
    for (var i = 0u; i < min(4u, params.elements - word * 4u); i++) {
      packed |= byte_of(word * 4u + i) << (8u * i);
    }
    out[word] = packed;
  }
}
