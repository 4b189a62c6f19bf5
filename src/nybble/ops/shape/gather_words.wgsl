{% from "std/strided.wgsl" import strided %}
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let index = linear_group(group) * THREADS + lane;
  if (index < params.elements) {
    var rest = index;
    var at = params.offset;
{$ strided(AXES, "size", {"at": "stride"}) $}
    out[index] = x[at];
  }
}
