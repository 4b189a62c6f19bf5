{% from "std/strided.wgsl" import strided %}
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
  if (word * 4u < params.elements) {
    var bytes = vec4<u32>();
    for (var i = 0u; i < min(4u, params.elements - word * 4u); i++) {
      var rest = word * 4u + i;
      var at = params.offset;
{$ strided(AXES, "size", {"at": "stride"}) $}
      bytes[i] = (x[at / 4u] >> (8u * (at % 4u))) & 255u;
    }
    out[word] = pack4xU8(bytes);
  }
}
