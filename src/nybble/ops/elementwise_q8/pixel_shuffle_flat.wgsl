{% include "elementwise_q8/pixel_shuffle_codes.wgsl" %}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
  if (word < params.words) {
    let height_in = params.height / FACTOR;
    let width_in = params.width / FACTOR;
    var bytes = vec4<i32>();
    for (var i = 0u; i < 4u; i++) {
      let column = (word * 4u + i) % params.width;
      let line = (word * 4u + i) / params.width;
      let row = line % params.height;
      let channel = line / params.height * FACTOR * FACTOR + phase_of(row, column);
      let source = (channel * height_in + row / FACTOR) * width_in + column / FACTOR;
      bytes[i] = extractBits(bitcast<i32>(x[source / 4u]), source % 4u * 8u, 8u);
    }
    out[word] = codes_of_bytes(bytes);
  }
}
