// Four elements of one token's row a thread; a token outside the table gives zeros.
{% include "linear_q4/unpack.wgsl" %}

fn scale_at(token: u32, column: u32) -> f32 {
  return scales[token * params.groups + min(column / params.group, params.groups - 1u)];
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let item = linear_group(group) * THREADS + lane;
  if (item < params.items) {
    let quad = item % params.quads;
    let position = item / params.quads;
    let token = indices[position];
    let inside = token >= 0 && u32(token) < params.tokens;
    let row = select(0u, u32(token), inside);
    let word = weight[(quad * params.down + row / 8u) * 4u + row % 8u / 2u];
    let codes = select(low_codes(word), high_codes(word), row % 2u == 1u);
    for (var i = 0u; i < min(4u, params.columns - quad * 4u); i++) {
      let value = codes[i] * scale_at(row, quad * 4u + i);
      out[position * params.columns + quad * 4u + i] = select(0.0, value, inside);
    }
  }
}
