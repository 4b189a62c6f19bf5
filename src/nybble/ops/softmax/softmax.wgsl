{% include "std/functions.wgsl" %}

{% include "std/rows.wgsl" %}

fn exp_one(v: f32) -> f32 {
  return exp_of(vec4<f32>(v)).x;
}

// A row runs along the axis: its elements lie ``inner`` apart.
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = row_of(group, lane);
  let base = row / params.inner * params.inner * params.length + row % params.inner;
  var largest = x[base];
  for (var i = first_of(lane); i < params.length; i += step_of()) {
    let v = x[base + i * params.inner];
    largest = select(largest, v, v > largest);
  }
  largest = max_over_row(largest, lane);
  var total = 0.0;
  for (var begin = first_of(lane); begin < params.length; begin += PART * step_of()) {
    var part = 0.0;
    for (var i = begin; i < min(begin + PART * step_of(), params.length); i += step_of()) {
      part += exp_one(x[base + i * params.inner] - largest);
    }
    total += part;
  }
  total = sum_over_row(total, lane);
$$ if LOGARITHM
  let shift = log_of(vec4<f32>(total)).x;
  for (var i = first_of(lane); i < params.length; i += step_of()) {
    out[base + i * params.inner] = x[base + i * params.inner] - largest - shift;
  }
$$ else
  let factor = 1.0 / total;
  for (var i = first_of(lane); i < params.length; i += step_of()) {
    out[base + i * params.inner] = exp_one(x[base + i * params.inner] - largest) * factor;
  }
$$ endif
}
