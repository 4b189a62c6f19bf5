// Integer sums of a product to values and codes; the reference is nybble.ops.output_stage.
{% include "std/quantize.wgsl" %}

// Values of four output channels, from 4 * quad on. Lanes beyond the last channel mean nothing.
fn values_of(sums: vec4<f32>, quad: u32) -> vec4<f32> {
  let products = guards(sums * params.scale_in * weight_scales[quad]);
$$ if "bias" in present
  return products + bias[quad];
$$ else
  return products;
$$ endif
}
$$ if QUANTIZED

fn output_codes(sums: vec4<f32>, quad: u32) -> u32 {
$$ if RELU
  let values = max(values_of(sums, quad), vec4<f32>());
$$ else
  let values = values_of(sums, quad);
$$ endif
  return codes_of(
    values * params.inverse, params.zero_point_out, params.code_min, params.code_max);
}
$$ endif
