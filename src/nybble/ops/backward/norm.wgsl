var<workgroup> partial: array<vec2<f32>, THREADS>;

fn total_of(mine: vec2<f32>, lane: u32) -> vec2<f32> {
  workgroupBarrier();
  partial[lane] = mine;
  workgroupBarrier();
  for (var width = THREADS / 2u; width > 0u; width /= 2u) {
    if (lane < width) {
      partial[lane] += partial[lane + width];
    }
    workgroupBarrier();
  }
  return partial[0];
}

fn scaled(at: u32, column: u32) -> f32 {
$$ if "weight" in present
  return d_out[at] * weight[column];
$$ else
  return d_out[at];
$$ endif
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  // A surplus workgroup of a folded grid repeats the last row: no branch around barriers.
  let base = min(linear_group(group), params.rows - 1u) * params.length;
  let share = 1.0 / f32(params.length);
  var mean = 0.0;
$$ if CENTER
  var sum = 0.0;
  for (var i = lane; i < params.length; i += THREADS) {
    sum += x[base + i];
  }
  mean = total_of(vec2<f32>(sum, 0.0), lane).x * share;
$$ endif
  var squares = 0.0;
  for (var i = lane; i < params.length; i += THREADS) {
    let centered = x[base + i] - mean;
    squares += centered * centered;
  }
  let scale = inverseSqrt(total_of(vec2<f32>(squares, 0.0), lane).x * share + params.eps);
  var sums = vec2<f32>();
  for (var i = lane; i < params.length; i += THREADS) {
    let d = scaled(base + i, i);
    sums += vec2<f32>(d, d * (x[base + i] - mean) * scale);
  }
  let means = total_of(sums, lane) * share;
  for (var i = lane; i < params.length; i += THREADS) {
    let normal = (x[base + i] - mean) * scale;
$$ if CENTER
    out[base + i] = scale * (scaled(base + i, i) - means.x - normal * means.y);
$$ else
    out[base + i] = scale * (scaled(base + i, i) - normal * means.y);
$$ endif
  }
}
