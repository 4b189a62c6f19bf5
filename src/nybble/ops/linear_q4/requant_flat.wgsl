// Four bytes, eight codes, a thread; the nibble beyond an odd row's end is 0.
{% include "linear_q4/quotient.wgsl" %}

fn code_at(row: u32, column: u32) -> u32 {
  let scale = scales[column / params.group * params.scale_row + row];
  let value = latent[row * params.k + column];
  return u32(clamp(rounded_quotient(value, scale), -8, 7) + 8);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
  if (word < params.words) {
    let row_bytes = (params.k + 1u) / 2u;
    var packed = 0u;
    for (var i = 0u; i < min(4u, params.bytes - word * 4u); i++) {
      let row = (word * 4u + i) / row_bytes;
      let column = (word * 4u + i) % row_bytes * 2u;
      packed |= code_at(row, column) << (8u * i);
      if (column + 1u < params.k) {
        packed |= code_at(row, column + 1u) << (8u * i + 4u);
      }
    }
    out[word] = packed;
  }
}
