{% include "reduce/offsets.wgsl" %}

var<workgroup> partial: array<f32, THREADS>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  // A surplus workgroup of a folded grid repeats the last result: no branch around barriers.
  let result = min(linear_group(group), params.results - 1u);
  let base = kept_offset(result);
  var best = {$ START $};
  for (var i = lane; i < params.length; i += THREADS) {
    let v = x[base + reduced_offset(i)];
    best = {$ STEP $};
  }
  partial[lane] = best;
  workgroupBarrier();
  for (var width = THREADS / 2u; width > 0u; width /= 2u) {
    if (lane < width) {
      let v = partial[lane + width];
      best = partial[lane];
      partial[lane] = {$ STEP $};
    }
    workgroupBarrier();
  }
  if (lane == 0u) {
    best = partial[0];
    out[result] = {$ FINISH $};
  }
}
