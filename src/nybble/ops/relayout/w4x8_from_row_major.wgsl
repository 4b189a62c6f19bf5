// Byte ``at`` of row ``row``; two codes 8 beyond the tensor.
fn byte_at(row: u32, at: u32) -> u32 {
  let inside = row < params.rows && at < params.row_bytes;
  let byte = select(0u, row * params.row_bytes + at, inside);
  return select(0x88u, (x[byte / 4u] >> (8u * (byte % 4u))) & 0xffu, inside);
}

// Four codes of a row, one a byte, in the low nibbles.
fn codes_at(row: u32, quad: u32) -> u32 {
  let pair = byte_at(row, quad * 2u) | (byte_at(row, quad * 2u + 1u) << 16u);
$$ if HIGH_FIRST
  return ((pair >> 4u) & 0x000f000fu) | ((pair & 0x000f000fu) << 8u);
$$ else
  return (pair & 0x000f000fu) | ((pair & 0x00f000f0u) << 4u);
$$ endif
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
  if (word < params.words) {
    let block = word / 4u;
    let row = block % params.down * 8u + word % 4u * 2u;
    let quad = block / params.down;
    out[word] = codes_at(row, quad) | (codes_at(row + 1u, quad) << 4u);
  }
}
