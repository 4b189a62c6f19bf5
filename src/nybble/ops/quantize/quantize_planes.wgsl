{% include "std/quantize.wgsl" %}

// A workgroup takes positions of one channel quad of one image: loads are contiguous.
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let linear = linear_group(group);
  let position = linear % params.blocks * THREADS + lane;
  let quad = linear / params.blocks % params.quads;
  let image = linear / params.blocks / params.quads;
  if (position < params.plane && image < params.images) {
    let channel = quad * 4u;
    let last = params.channels - 1u;
    let start = image * params.channels * params.plane + position;
    // Padding lanes repeat the last channel; they may hold anything.
    let values = vec4<f32>(
      x[start + channel * params.plane],
      x[start + min(channel + 1u, last) * params.plane],
      x[start + min(channel + 2u, last) * params.plane],
      x[start + min(channel + 3u, last) * params.plane]);
    out[(image * params.plane + position) * params.quads + quad] = codes_of(
      values * params.inverse, params.zero_point, params.code_min, params.code_max);
  }
}
