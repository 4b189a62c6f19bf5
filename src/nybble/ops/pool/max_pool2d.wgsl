fn is_nan(value: f32) -> bool {
  return (bitcast<u32>(value) & 0x7fffffffu) > 0x7f800000u;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let index = linear_group(group) * THREADS + lane;
  if (index < params.elements) {
    let pixels = u32(params.oh * params.ow);
    let plane = index / pixels * u32(params.h * params.w);
    let row = i32(index % pixels) / params.ow * params.stride_h - params.padding_h;
    let column = i32(index % pixels) % params.ow * params.stride_w - params.padding_w;
    var best = 0.0;
    var position = -1;
    for (var i = 0; i < params.kernel_h; i++) {
      let y = row + i * params.dilation_h;
      if (y >= 0 && y < params.h) {
        for (var j = 0; j < params.kernel_w; j++) {
          let at = column + j * params.dilation_w;
          if (at >= 0 && at < params.w) {
            let value = x[plane + u32(y * params.w + at)];
            if (position < 0 || value > best || is_nan(value)) {
              best = value;
              position = y * params.w + at;
            }
          }
        }
      }
    }
    out[index] = best;
    indices[index] = position;
  }
}
