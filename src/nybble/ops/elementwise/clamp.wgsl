$$ if FLOAT
{% include "std/nan.wgsl" %}

$$ endif
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
  if (word < params.words) {
    let v = x[word];
    let bounded = min(max(v, vec4(params.low)), vec4(params.high));
$$ if FLOAT
    out[word] = select(bounded, v, is_nan_of(v));
$$ else
    out[word] = bounded;
$$ endif
  }
}
