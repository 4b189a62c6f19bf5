var<workgroup> partial: array<f32, THREADS>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  // A surplus workgroup of a folded grid repeats the last row: no branch around barriers.
  let row = min(linear_group(group), params.rows - 1u);
  let base = row / params.inner * params.length * params.inner + row % params.inner;
  var sum = 0.0;
  for (var i = lane; i < params.length; i += THREADS) {
    let at = base + i * params.inner;
$$ if LOG
    sum += d_out[at];
$$ else
    sum += d_out[at] * value[at];
$$ endif
  }
  partial[lane] = sum;
  workgroupBarrier();
  for (var width = THREADS / 2u; width > 0u; width /= 2u) {
    if (lane < width) {
      partial[lane] += partial[lane + width];
    }
    workgroupBarrier();
  }
  let total = partial[0];
  for (var i = lane; i < params.length; i += THREADS) {
    let at = base + i * params.inner;
$$ if LOG
    let v = vec4<f32>(value[at]);
    out[at] = d_out[at] - exp_of(v).x * total;
$$ else
    out[at] = value[at] * (d_out[at] - total);
$$ endif
  }
}
$$ if LOG

{% include "std/functions.wgsl" %}
$$ endif
