{% include "reduce/offsets.wgsl" %}

// Four results a thread, a byte each.
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
  if (word * 4u < params.results) {
    var bytes = vec4<u32>();
    for (var j = 0u; j < min(4u, params.results - word * 4u); j++) {
      let base = kept_offset(word * 4u + j);
      for (var i = 0u; i < params.length && bytes[j] == 0u; i++) {
        let at = base + reduced_offset(i);
        bytes[j] = min(1u, (x[at / 4u] >> (8u * (at % 4u))) & 255u);
      }
    }
    out[word] = pack4xU8(bytes);
  }
}
