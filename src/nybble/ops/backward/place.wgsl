@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let element = linear_group(group) * THREADS + lane;
  if (element < params.elements) {
    let inside = element % params.inner;
    let along = element / params.inner % params.extent;
    let outer = element / params.inner / params.extent;
    // Wraps below the start, and is then beyond the length.
    let from_start = along - params.start;
    let index = from_start / params.step;
    let hit = along >= params.start && from_start % params.step == 0u && index < params.length;
    if (hit) {
      out[element] = x[(outer * params.length + index) * params.inner + inside];
    } else {
      out[element] = 0.0;
    }
  }
}
