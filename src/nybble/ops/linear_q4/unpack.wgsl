// The values code - 8 of a word's four even (low) or odd (high) rows. A code put into the low
// bits of a float's mantissa adds code * 2^p to its power of two: no conversion is needed.
fn low_codes(word: u32) -> vec4<f32> {
  let later = word >> 12u;
  let bits = (vec4<u32>(word, word, later, later) & vec4<u32>(0xfu, 0xf00u, 0xf0u, 0xf000u))
    | vec4<u32>(0x4b000000u, 0x47000000u, 0x49000000u, 0x45000000u);
  return bitcast<vec4<f32>>(bits) - vec4<f32>(8388616.0, 32776.0, 524296.0, 2056.0);
}

fn high_codes(word: u32) -> vec4<f32> {
  let later = word >> 12u;
  let bits = (vec4<u32>(word, word, later, later) & vec4<u32>(0xf0u, 0xf000u, 0xf00u, 0xf0000u))
    | vec4<u32>(0x49000000u, 0x45000000u, 0x47000000u, 0x43000000u);
  return bitcast<vec4<f32>>(bits) - vec4<f32>(524296.0, 2056.0, 32776.0, 136.0);
}
