{% include "linear/finish.wgsl" %}

var<workgroup> partial: array<f32, THREADS>;

// One result a workgroup: its threads share the weight's row.
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  // A surplus workgroup of a folded grid repeats the last result: no branch around barriers.
  let item = min(linear_group(group), params.m * params.n - 1u);
  let row = item / params.n;
  let column = item % params.n;
  let quads = params.k / 4u;
  var sum = 0.0;
  for (var i = lane; i < quads; i += THREADS) {
    sum += dot(x[row * quads + i], weight[column * quads + i]);
  }
  partial[lane] = sum;
  workgroupBarrier();
  for (var width = THREADS / 2u; width > 0u; width /= 2u) {
    if (lane < width) {
      partial[lane] += partial[lane + width];
    }
    workgroupBarrier();
  }
  if (lane == 0u) {
    out[item] = finish(partial[0], row, column);
  }
}
