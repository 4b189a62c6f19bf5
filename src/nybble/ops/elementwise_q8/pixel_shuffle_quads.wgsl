{% include "elementwise_q8/pixel_shuffle_codes.wgsl" %}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
  if (word < params.words) {
    let quads = (params.channels + 3u) / 4u;
    let column = word / quads % params.width;
    let line = word / quads / params.width;
    let row = line % params.height;
    let height_in = params.height / FACTOR;
    let width_in = params.width / FACTOR;
    let pixel = (line / params.height * height_in + row / FACTOR) * width_in + column / FACTOR;
    let channels_in = params.channels * FACTOR * FACTOR;
    let start = pixel * ((channels_in + 3u) / 4u);
    var bytes = vec4<i32>();
    for (var i = 0u; i < 4u; i++) {
      let channel = min(word % quads * 4u + i, params.channels - 1u) * FACTOR * FACTOR
        + phase_of(row, column);
      bytes[i] = extractBits(bitcast<i32>(x[start + channel / 4u]), channel % 4u * 8u, 8u);
    }
    out[word] = codes_of_bytes(bytes);
  }
}
