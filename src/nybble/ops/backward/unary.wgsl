$$ if "_of(" in VALUE
{% include "std/functions.wgsl" %}

$$ endif
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
  if (word < params.words) {
    let d = d_out[word];
    let v = value[word];
    out[word] = {$ VALUE $};
  }
}
