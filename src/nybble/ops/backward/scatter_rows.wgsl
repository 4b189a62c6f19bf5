@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let element = linear_group(group) * THREADS + lane;
  if (element < params.elements) {
    let row = i32(element / params.width);
    let column = element % params.width;
    // Tokens in order: the sum has one order on every device, and needs no atomics.
    var sum = 0.0;
    for (var token = 0u; token < params.tokens; token++) {
      if (indices[token] == row) {
        sum += d_out[token * params.width + column];
      }
    }
    out[element] = sum;
  }
}
