{% include "reduce/offsets.wgsl" %}

// Partial results of so many elements: a sum's error then grows with length / PART, not length.
const PART = 64u;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let result = linear_group(group) * THREADS + lane;
  if (result < params.results) {
    let base = kept_offset(result);
    var total = {$ START $};
    for (var first = 0u; first < params.length; first += PART) {
      var best = {$ START $};
      for (var i = first; i < min(first + PART, params.length); i++) {
        let v = x[base + reduced_offset(i)];
        best = {$ STEP $};
      }
      let v = best;
      best = total;
      total = {$ STEP $};
    }
    let best = total;
    out[result] = {$ FINISH $};
  }
}
