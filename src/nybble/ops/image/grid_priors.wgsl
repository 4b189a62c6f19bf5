@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let item = linear_group(group) * THREADS + lane;
  if (item < params.elements) {
    let cell = item / 2u;
    let place = select(cell % params.width, cell / params.width, item % 2u == 1u);
    out[item] = (f32(place) + params.offset) * params.stride;
  }
}
