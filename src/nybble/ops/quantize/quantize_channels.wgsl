{% include "std/quantize.wgsl" %}

fn code_at(element: u32) -> i32 {
  let channel = element / params.inner % params.channels;
$$ if "zero_points" in present
  let zero_point = zero_points[channel];
$$ else
  let zero_point = 0;
$$ endif
  return code_of(x[element] * scales[channel], zero_point, params.code_min, params.code_max);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
  if (word < params.words) {
    var codes = vec4<i32>();
    for (var i = 0u; i < min(4u, params.elements - word * 4u); i++) {
      codes[i] = code_at(word * 4u + i);
    }
    out[word] = pack4xI8(codes);
  }
}
