{% include "std/quantize.wgsl" %}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first = linear_group(group) * (THREADS * WORDS) + lane;
  // All loads are issued before the first result is due.
$$ for i in range(WORDS)
  let word_{$ i $} = first + {$ i $}u * THREADS;
  let values_{$ i $} = x[word_{$ i $}];
$$ endfor
$$ for i in range(WORDS)
  if (word_{$ i $} < params.words) {
    out[word_{$ i $}] = codes_of(
      values_{$ i $} * params.inverse, params.zero_point, params.code_min, params.code_max);
  }
$$ endfor
}
