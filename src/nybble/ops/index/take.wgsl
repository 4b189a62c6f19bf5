// Where an index points: from the end if negative; outside, to the nearest element.
fn place_of(index: i32) -> u32 {
  let extent = i32(params.extent);
  return u32(clamp(select(index, index + extent, index < 0), 0, extent - 1));
}

fn source_of(item: u32) -> u32 {
  let inner = item % params.inner;
  let position = item / params.inner % params.indices;
  let outer = item / params.inner / params.indices;
  return (outer * params.extent + place_of(index[position])) * params.inner + inner;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
$$ if NARROW
  let word = linear_group(group) * THREADS + lane;
  if (word * 4u < params.elements) {
    var bytes = vec4<u32>();
    for (var i = 0u; i < min(4u, params.elements - word * 4u); i++) {
      let at = source_of(word * 4u + i);
      bytes[i] = ({$ TABLE $}[at / 4u] >> (8u * (at % 4u))) & 255u;
    }
    out[word] = pack4xU8(bytes);
  }
$$ else
  let item = linear_group(group) * THREADS + lane;
  if (item < params.elements) {
    out[item] = {$ TABLE $}[source_of(item)];
  }
$$ endif
}
