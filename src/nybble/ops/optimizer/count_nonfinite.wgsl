var<workgroup> partial: array<u32, THREADS>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  var count = 0u;
  // By bits: compilers may assume that floats are finite.
  for (var word = group.x * THREADS + lane; word < params.words; word += PARTS * THREADS) {
    let bits = bitcast<vec4<u32>>(x[word]) & vec4<u32>(0x7f800000u);
    let first = word * 4u;
    for (var i = 0u; i < 4u; i++) {
      count += select(0u, 1u, bits[i] == 0x7f800000u && first + i < params.elements);
    }
  }
  partial[lane] = count;
  workgroupBarrier();
  for (var width = THREADS / 2u; width > 0u; width /= 2u) {
    if (lane < width) {
      partial[lane] += partial[lane + width];
    }
    workgroupBarrier();
  }
  if (lane == 0u) {
    out[group.x] = i32(partial[0]);
  }
}
