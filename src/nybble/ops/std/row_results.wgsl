{% include "std/output_stage.wgsl" %}

// Stores the results of four output channels of one row.
fn store(row: u32, quad: u32, sums: vec4<f32>, affine: Affine) {
$$ if QUANTIZED
  out[row * params.quads_out + quad] = output_codes(sums, affine);
$$ else
  let values = values_of(sums, affine);
  let start = row * params.features + quad * 4u;
  for (var i = 0u; i < min(4u, params.features - quad * 4u); i++) {
    out[start + i] = values[i];
  }
$$ endif
}
