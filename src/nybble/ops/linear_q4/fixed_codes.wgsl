// A thread quantizes one block of 32 inputs and stores the codes less the row's zero point as
// fixed-point numbers, whose scale is the row's.
{% include "linear_q4/inputs.wgsl" %}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let at = linear_group(group) * THREADS + lane;
  if (at >= params.rows * params.blocks) {
    return;
  }
  let row = at / params.blocks;
  let first = at % params.blocks * 8u;
$$ for q in range(8)
  let n_{$ q $} = vec4<i32>(input_quad(row, first + {$ q $}u));
$$ endfor
{% include "linear_q4/limbs.wgsl" %}
  x_scales[at % params.blocks * params.rows + row] = input_scales[row];
}
