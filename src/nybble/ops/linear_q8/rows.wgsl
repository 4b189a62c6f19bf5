{% include "std/dot4.wgsl" %}
{% include "std/row_results.wgsl" %}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let item = linear_group(group) * THREADS + lane;
  if (item < params.items) {
    let quad = item % params.quads_out;
    let row = item / params.quads_out;
    let start = row * params.words_in;
    let at = quad * (params.words_in + 1u);
    var sums = -params.zero_point_in * bitcast<vec4<i32>>(weight[at]);
    for (var i = 0u; i < params.words_in; i++) {
      sums += dots4(x[start + i], weight[at + 1u + i]);
    }
    store(row, quad, vec4<f32>(sums), affine_of(quad));
  }
}
