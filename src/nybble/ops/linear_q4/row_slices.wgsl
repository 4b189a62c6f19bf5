// Of kernels whose slices of the units are eight threads in a row.
{% include "linear_q4/unpack.wgsl" %}
{% include "linear_q4/scales.wgsl" %}
{% include "linear_q4/inputs.wgsl" %}
{% include "linear_q4/results.wgsl" %}
{% include "linear_q4/row_integers.wgsl" %}

var<workgroup> partial: array<vec4<f32>, {$ 2 * THREADS $}>;

// Whether the eight threads of a slice are eight in a row of one subgroup, as WGSL leaves open.
fn are_neighbours(lane: u32, place: u32, size: u32) -> bool {
  let next = subgroupShuffleXor(lane, 1u);
  let second = subgroupShuffleXor(lane, 2u);
  let fourth = subgroupShuffleXor(lane, 4u);
  return size >= 8u && place % 8u == lane % 8u
    && next == (lane ^ 1u) && second == (lane ^ 2u) && fourth == (lane ^ 4u);
}
