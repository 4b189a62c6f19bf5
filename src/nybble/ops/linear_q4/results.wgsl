// Stores four results of a row.
fn store(row: u32, quad: u32, sums: vec4<f32>) {
  var results = sums;
$$ if QUANTIZED
  results *= input_scales[row];
$$ endif
  let first = quad * 4u;
$$ if WIDE
  if (row < params.rows && first < params.n) {
$$ if "bias" in present
    results += vec4<f32>(bias[first], bias[first + 1u], bias[first + 2u], bias[first + 3u]);
$$ endif
    out[row * (params.n / 4u) + quad] = results;
  }
$$ else
  for (var i = 0u; i < 4u; i++) {
    if (row < params.rows && first + i < params.n) {
      out[row * params.n + first + i] = results[i]{$ " + bias[first + i]" if "bias" in present else "" $};
    }
  }
$$ endif
}
