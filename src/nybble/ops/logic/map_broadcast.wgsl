{% from "std/strided.wgsl" import strided %}
$$ if "_of(" in VALUE
{% include "std/functions.wgsl" %}

$$ endif
// Four elements of the result a thread, each operand's found by its own strides.
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
  if (word < params.words) {
$$ for name in OPERANDS.split()
    var {$ name $}_4 = {$ "vec4<u32>" if name in BYTES.split() else QUAD $}();
$$ endfor
    for (var i = 0u; i < min(4u, params.elements - word * 4u); i++) {
      var rest = word * 4u + i;
$$ set strides = {"condition": "condition_stride", "x": "x_stride", "other": "other_stride"}
$$ set places = dict()
$$ for name in OPERANDS.split()
      var {$ name $}_at = 0u;
$$ set _ = places.update({name ~ "_at": strides[name]})
$$ endfor
{$ strided(AXES, "size", places) $}
$$ for name in OPERANDS.split()
      {$ name $}_4[i] = {$ "(%s[%s_at / 4u] >> (8u * (%s_at %% 4u))) & 255u" % (name, name, name) if name in BYTES.split() else "%s[%s_at]" % (name, name) $};
$$ endfor
    }
    out[word] = {$ "pack4xU8(%s)" % VALUE if "out" in BYTES.split() else VALUE $};
  }
}
