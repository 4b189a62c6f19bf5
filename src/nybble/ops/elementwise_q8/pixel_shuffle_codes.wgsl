{% include "std/quantize.wgsl" %}

fn codes_of_bytes(bytes: vec4<i32>) -> u32 {
  let values = vec4<f32>(bytes - params.zero_point_in) * params.scale_in;
  return codes_of(
    values * params.inverse, params.zero_point_out, params.code_min, params.code_max);
}

// The channel of x within its group of FACTOR * FACTOR that fills the pixel (row, column).
fn phase_of(row: u32, column: u32) -> u32 {
  return row % FACTOR * FACTOR + column % FACTOR;
}
