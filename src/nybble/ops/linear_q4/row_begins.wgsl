// What a kernel of slices of eight threads begins with: its block of outputs, its slice's units.
@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
  @builtin(subgroup_invocation_id) place: u32,
  @builtin(subgroup_size) subgroup_size: u32,
) {
  let own = lane % 8u;
  let block = min(linear_group(group) * 8u + own, params.down - 1u);
  let base = place / 8u * 8u;
  let rounds = (params.units + {$ slices - 1 $}u) / {$ slices $}u;
  let first = lane / 8u * rounds;
  var unit = first;
  var sums0 = vec4<f32>();
  var sums1 = vec4<f32>();
  var rough = false;
  var inputs = raw_quad(0u, min(first * 8u + own, params.quads - 1u));
