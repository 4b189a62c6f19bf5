// A workgroup takes positions of one channel quad of one image: stores are contiguous.
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let linear = linear_group(group);
  let position = linear % params.blocks * THREADS + lane;
  let quad = linear / params.blocks % params.quads;
  let image = linear / params.blocks / params.quads;
  if (position < params.plane && image < params.images) {
    let channel = quad * 4u;
    let start = (image * params.channels + channel) * params.plane + position;
    let codes = x[(image * params.plane + position) * params.quads + quad];
    let values = vec4<f32>(unpack4xI8(codes) - params.zero_point) * params.scale;
    for (var i = 0u; i < min(4u, params.channels - channel); i++) {
      out[start + i * params.plane] = values[i];
    }
  }
}
