{% from "std/strided.wgsl" import strided %}
$$ if "_of(" in VALUE
{% include "std/functions.wgsl" %}

$$ endif
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
  if (word < params.words) {
    var a = {$ QUAD $}();
    var b = {$ QUAD $}();
    for (var i = 0u; i < min(4u, params.elements - word * 4u); i++) {
      var rest = word * 4u + i;
      var x_at = 0u;
      var other_at = 0u;
{$ strided(AXES, "size", {"x_at": "x_stride", "other_at": "other_stride"}) $}
      a[i] = x[x_at];
      b[i] = other[other_at];
    }
    out[word] = {$ VALUE $};
  }
}
