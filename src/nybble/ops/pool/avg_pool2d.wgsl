@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let index = linear_group(group) * THREADS + lane;
  if (index < params.elements) {
    let pixels = u32(params.oh * params.ow);
    let plane = index / pixels * u32(params.h * params.w);
    let row = i32(index % pixels) / params.ow * params.stride_h - params.padding_h;
    let column = i32(index % pixels) % params.ow * params.stride_w - params.padding_w;
    let top = max(row, 0);
    let left = max(column, 0);
    let bottom = min(row + params.kernel_h, params.h);
    let right = min(column + params.kernel_w, params.w);
    var sum = 0.0;
    for (var i = top; i < bottom; i++) {
      for (var j = left; j < right; j++) {
        sum += x[plane + u32(i * params.w + j)];
      }
    }
    var divisor = params.divisor;
    if (divisor == 0) {
      let padded_bottom = min(row + params.kernel_h, params.h + params.padding_h);
      let padded_right = min(column + params.kernel_w, params.w + params.padding_w);
      divisor = select(
        max(bottom - top, 0) * max(right - left, 0),
        (padded_bottom - row) * (padded_right - column),
        params.include_padding == 1u);
    }
    let filled = bottom > top && right > left;
    out[index] = select(0.0, sum / f32(select(1, divisor, filled)), filled);
  }
}
