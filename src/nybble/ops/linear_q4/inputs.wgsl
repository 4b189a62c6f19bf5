// Four inputs of a row, from ``quad * 4`` on; zero beyond its end.
fn raw_quad(row: u32, quad: u32) -> vec4<f32> {
$$ if WIDE
$$ if FULL
  return x[row * params.quads + quad];
$$ else
  return select(vec4<f32>(), x[row * params.quads + quad], quad < params.quads);
$$ endif
$$ else
  let first = quad * 4u;
  let at = row * params.k + first;
  return vec4<f32>(
    select(0.0, x[at], first < params.k), select(0.0, x[at + 1u], first + 1u < params.k),
    select(0.0, x[at + 2u], first + 2u < params.k), select(0.0, x[at + 3u], first + 3u < params.k));
$$ endif
}
$$ if QUANTIZED

{% include "linear_q4/quotient.wgsl" %}

fn zero_point(row: u32) -> i32 {
  return extractBits(bitcast<i32>(input_zero_points[row / 4u]), 8u * (row % 4u), 8u);
}
$$ endif

// The same as the product takes them: for quantized inputs the codes less their zero point.
fn input_quad(row: u32, quad: u32) -> vec4<f32> {
$$ if QUANTIZED
  let scale = input_scales[row];
  let zero = f32(zero_point(row));
  let values = raw_quad(row, quad);
  let inverse = 1.0 / scale;
  var steps = quick_quotients(values, inverse, -128.0 - zero, 127.0 - zero);
  if (!usual(scale) || unsure(values, inverse, -128.0 - zero, 127.0 - zero)) {
    steps = sure_quotients(values, vec4<f32>(scale), -128.0 - zero, 127.0 - zero);
  }
  return steps;
$$ else
  return raw_quad(row, quad);
$$ endif
}
