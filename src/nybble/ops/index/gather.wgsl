{% from "std/strided.wgsl" import strided %}
// The offset in x of one element of the result: its place, but for the axis that is indexed.
fn source_of(item: u32) -> u32 {
  let extent = i32(params.extent);
  let place = index[item];
  let along_dim = clamp(select(place, place + extent, place < 0), 0, extent - 1);
  var rest = item;
  var at = u32(along_dim) * params.dim_stride;
{$ strided(AXES, "size", {"at": "stride"}) $}
  return at;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
$$ if NARROW
  let word = linear_group(group) * THREADS + lane;
  if (word * 4u < params.elements) {
    var bytes = vec4<u32>();
    for (var i = 0u; i < min(4u, params.elements - word * 4u); i++) {
      let at = source_of(word * 4u + i);
      bytes[i] = (x[at / 4u] >> (8u * (at % 4u))) & 255u;
    }
    out[word] = pack4xU8(bytes);
  }
$$ else
  let item = linear_group(group) * THREADS + lane;
  if (item < params.elements) {
    out[item] = x[source_of(item)];
  }
$$ endif
}
