// Sixteen codes of a row. Those past its end meet zero weights.
fn codes_from(at: u32) -> vec4<u32> {
$$ if WIDE
  return x[at];
$$ else
  return vec4<u32>(x[at], x[at + 1u], x[at + 2u], x[at + 3u]);
$$ endif
}
