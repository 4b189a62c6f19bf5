{% from "std/strided.wgsl" import strided %}
{% include "std/quantize.wgsl" %}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
  if (word < params.words) {
    var first = vec4<i32>();
    var second = vec4<i32>();
    for (var i = 0u; i < min(4u, params.elements - word * 4u); i++) {
      var rest = word * 4u + i;
      var a_at = 0u;
      var b_at = 0u;
{$ strided(AXES, "size", {"a_at": "a_stride", "b_at": "b_stride"}) $}
      first[i] = unpack4xI8(a[a_at / 4u])[a_at % 4u];
      second[i] = unpack4xI8(b[b_at / 4u])[b_at % 4u];
    }
    let left = vec4<f32>(first - params.zero_point_a) * params.scale_a;
    let right = vec4<f32>(second - params.zero_point_b) * params.scale_b * params.alpha;
    let sum = guards(left) + guards(right);
    out[word] = codes_of(
      sum * params.inverse, params.zero_point_out, params.code_min, params.code_max);
  }
}
