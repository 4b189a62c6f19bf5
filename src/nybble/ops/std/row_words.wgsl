// Where a row of codes begins.
fn origin_of(row: u32) -> u32 {
  return row * params.depth;
}

// Sixteen codes of a row. Those past its end meet zero weights.
fn codes_from(origin: u32, k: u32) -> vec4<u32> {
  let at = origin + k;
$$ if WIDE
  return x[at];
$$ else
  return vec4<u32>(x[at], x[at + 1u], x[at + 2u], x[at + 3u]);
$$ endif
}
