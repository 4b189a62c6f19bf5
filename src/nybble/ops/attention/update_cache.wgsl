@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let index = linear_group(group) * THREADS + lane;
  if (index < params.elements) {
    let batch = index / params.rows;
    cache[batch * params.capacity + params.start + index % params.rows] = value[index];
  }
  if (index == 0u) {
    out[0] = 0.0;
  }
}
