// Adds the parts of a product in fixed point, and the bias. Fixed point has no infinity and no
// NaN: a row that holds one has become NaN, and its products are made again in float32.
$$ if REPAIRED
{% include "linear_q4/lost.wgsl" %}
{% include "linear_q4/unpack.wgsl" %}
{% include "linear_q4/scales.wgsl" %}

fn accumulate(v: vec4<f32>, c: vec4<f32>, sum: f32) -> f32 {
  return fma(v.w, c.w, fma(v.z, c.z, fma(v.y, c.y, fma(v.x, c.x, sum))));
}

fn in_floats(row: u32, quad: u32) -> vec4<f32> {
  var sums = vec4<f32>();
  for (var at = 0u; at < params.quads; at++) {
    let v = x[row * params.quads + at];
    let words = weight[at * params.down * 2u + quad];
    let scale = scale_quad(at * 4u / params.group, quad);
    sums += scale * vec4<f32>(
      accumulate(v, low_codes(words.x), 0.0), accumulate(v, high_codes(words.x), 0.0),
      accumulate(v, low_codes(words.y), 0.0), accumulate(v, high_codes(words.y), 0.0));
  }
  return sums;
}
$$ endif

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let at = linear_group(group) * THREADS + lane;
  if (at >= params.rows * params.across) {
    return;
  }
  var sums = parts[at];
  for (var split = 1u; split < params.splits; split++) {
    sums += parts[split * params.rows * params.across + at];
  }
$$ if REPAIRED
  if (any(lost(sums))) {
    sums = select(sums, in_floats(at / params.across, at % params.across), lost(sums));
  }
$$ endif
$$ if "bias" in present
  let first = at % params.across * 4u;
  sums += vec4<f32>(bias[first], bias[first + 1u], bias[first + 2u], bias[first + 3u]);
$$ endif
  out[at] = sums;
}
