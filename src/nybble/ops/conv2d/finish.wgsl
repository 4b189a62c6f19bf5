{% include "std/nan.wgsl" %}

// What follows finished product sums: bias, and bounds; NaN stays.
fn finish_quad(sum: vec4<f32>, channel: u32) -> vec4<f32> {
$$ if "bias" in present
  let value = sum + bias[channel];
$$ else
  let value = sum;
$$ endif
$$ if CLAMPED
  let bounded = min(max(value, vec4<f32>(params.low)), vec4<f32>(params.high));
  return select(bounded, value, is_nan_of(value));
$$ else
  return value;
$$ endif
}

fn finish(sum: f32, channel: u32) -> f32 {
  return finish_quad(vec4<f32>(sum), channel).x;
}
