{% include "std/rows.wgsl" %}

// A row's elements less their mean (not so for rms_norm), over their deviation, scaled and shifted.
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = row_of(group, lane);
  let base = row * params.length;
  let share = 1.0 / f32(params.length);
$$ if CENTERED
  var total = 0.0;
  for (var begin = first_of(lane); begin < params.length; begin += PART * step_of()) {
    var part = 0.0;
    for (var i = begin; i < min(begin + PART * step_of(), params.length); i += step_of()) {
      part += x[base + i];
    }
    total += part;
  }
  let center = sum_over_row(total, lane) * share;
$$ else
  let center = 0.0;
$$ endif
  var squares = 0.0;
  for (var begin = first_of(lane); begin < params.length; begin += PART * step_of()) {
    var part = 0.0;
    for (var i = begin; i < min(begin + PART * step_of(), params.length); i += step_of()) {
      let v = x[base + i] - center;
      part += v * v;
    }
    squares += part;
  }
  let scale = 1.0 / sqrt(sum_over_row(squares, lane) * share + params.eps);
  // Channels of one group lie ``inner`` elements each, one after another.
  let channel = row % params.groups * (params.length / params.inner);
  for (var i = first_of(lane); i < params.length; i += step_of()) {
    var v = (x[base + i] - center) * scale;
$$ if "weight" in present
    v *= weight[channel + i / params.inner];
$$ endif
$$ if "bias" in present
    v += bias[channel + i / params.inner];
$$ endif
    out[base + i] = v;
  }
$$ if CENTERED
  if (first_of(lane) == 0u) {
    mean[row] = center;
    rstd[row] = scale;
  }
$$ endif
}
