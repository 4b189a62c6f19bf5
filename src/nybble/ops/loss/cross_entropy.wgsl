{% include "std/functions.wgsl" %}

var<workgroup> partial: array<f32, THREADS>;

fn exponential(value: f32) -> f32 {
  return exp_of(vec4<f32>(value)).x;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  // A surplus workgroup of a folded grid repeats the last row: no branch around barriers.
  let row = min(linear_group(group), params.rows - 1u);
  let base = row * params.classes;
  let label = labels[row];
  var highest = logits[base];
  for (var i = lane; i < params.classes; i += THREADS) {
    let v = logits[base + i];
    highest = select(highest, v, v > highest);
  }
  partial[lane] = highest;
  workgroupBarrier();
  for (var width = THREADS / 2u; width > 0u; width /= 2u) {
    if (lane < width) {
      let v = partial[lane + width];
      partial[lane] = select(partial[lane], v, v > partial[lane]);
    }
    workgroupBarrier();
  }
  highest = partial[0];
  workgroupBarrier();
  var sum = 0.0;
  for (var i = lane; i < params.classes; i += THREADS) {
    sum += exponential(logits[base + i] - highest);
  }
  partial[lane] = sum;
  workgroupBarrier();
  for (var width = THREADS / 2u; width > 0u; width /= 2u) {
    if (lane < width) {
      partial[lane] += partial[lane + width];
    }
    workgroupBarrier();
  }
  sum = partial[0];
  let counted = label >= 0 && u32(max(label, 0)) < params.classes;
$$ if "weight" in present
  let share = select(0.0, weight[0] * params.share, counted);
$$ else
  let share = select(0.0, params.share, counted);
$$ endif
  for (var i = lane; i < params.classes; i += THREADS) {
    let hit = select(0.0, 1.0, i32(i) == label);
    let slope = exponential(logits[base + i] - highest) / sum - hit;
    dlogits[base + i] = select(0.0, slope * share, counted);
  }
  if (lane == 0u) {
    let at = base + min(u32(max(label, 0)), params.classes - 1u);
    // The difference first: beside logits far from zero the logarithm would lose its digits.
    let loss = log_of(vec4<f32>(sum)).x + (highest - logits[at]);
    losses[row] = select(0.0, loss * share, counted);
  }
}
