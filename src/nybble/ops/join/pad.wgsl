// The element of x that lies at ``item`` of the result, or the padding.
fn element(item: u32) -> {$ "u32" if NARROW else SCALAR $} {
  var rest = item;
  var at = 0u;
  var inside = true;
$$ for i in range(RANK)
  {
    // Wraps below zero, which is then beyond the size.
    let along = rest % params.out_size_{$ i $} - params.before_{$ i $};
    rest = rest / params.out_size_{$ i $};
    inside = inside && along < params.size_{$ i $};
    at += along * params.stride_{$ i $};
  }
$$ endfor
  if (inside) {
$$ if NARROW
    return (x[at / 4u] >> (8u * (at % 4u))) & 255u;
$$ else
    return x[at];
$$ endif
  }
  return params.value;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
$$ if NARROW
  if (word * 4u < params.elements) {
    var bytes = vec4<u32>();
    for (var i = 0u; i < min(4u, params.elements - word * 4u); i++) {
      bytes[i] = element(word * 4u + i);
    }
    out[word] = pack4xU8(bytes);
  }
$$ else
  if (word < params.elements) {
    out[word] = element(word);
  }
$$ endif
}
