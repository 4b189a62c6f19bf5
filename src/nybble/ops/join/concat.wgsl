// Reads element ``item`` of the result: the tensors follow one another in pieces of ``row_i`` each.
fn element(item: u32) -> {$ "u32" if NARROW else SCALAR $} {
  let outer = item / params.whole;
  var at = item % params.whole;
$$ for i in range(7)
$$ if "x_%d" % i in present
  if (at < params.row_{$ i $}) {
    let place = outer * params.row_{$ i $} + at;
$$ if NARROW
    return (x_{$ i $}[place / 4u] >> (8u * (place % 4u))) & 255u;
$$ else
    return x_{$ i $}[place];
$$ endif
  }
  at -= params.row_{$ i $};
$$ endif
$$ endfor
  return {$ "u32" if NARROW else SCALAR $}();
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
