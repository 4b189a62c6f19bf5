@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = linear_group(group) * THREADS + lane;
  if (i < params.vectors) {
    out[i] = x[i];
  }
}
