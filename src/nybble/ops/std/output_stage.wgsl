// Integer sums of a product to values and codes; the reference is nybble.ops.output_stage.
{% include "std/quantize.wgsl" %}

// What four output channels multiply and add; read once where a thread makes several results.
struct Affine {
  scales: vec4<f32>,
  bias: vec4<f32>,
};

// Of the channels from 4 * quad on. Lanes beyond the last channel mean nothing.
fn affine_of(quad: u32) -> Affine {
$$ if "bias" in present
  return Affine(weight_scales[quad], bias[quad]);
$$ else
  return Affine(weight_scales[quad], vec4<f32>());
$$ endif
}

fn values_of(sums: vec4<f32>, affine: Affine) -> vec4<f32> {
  let products = guards(sums * params.scale_in * affine.scales);
$$ if "bias" in present
  return products + affine.bias;
$$ else
  return products;
$$ endif
}
$$ if QUANTIZED

fn output_codes(sums: vec4<f32>, affine: Affine) -> u32 {
$$ if RELU
  let values = max(values_of(sums, affine), vec4<f32>());
$$ else
  let values = values_of(sums, affine);
$$ endif
  return codes_of(
    values * params.inverse, params.zero_point_out, params.code_min, params.code_max);
}
$$ endif
