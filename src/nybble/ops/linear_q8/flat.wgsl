{% include "std/dot4.wgsl" %}
{% include "std/quantize.wgsl" %}

// Four codes from the byte `offset` on; those beyond the input repeat its last word.
fn codes_at(offset: u32) -> u32 {
  let word = offset / 4u;
  let shift = offset % 4u * 8u;
  let low = x[min(word, params.last_word)];
  let high = x[min(word + 1u, params.last_word)];
  return select((low >> shift) | (high << (32u - shift)), low, shift == 0u);
}

fn value_at(index: u32) -> f32 {
  let feature = index % params.features;
  let start = index / params.features * params.depth;
  let words = (params.depth + 3u) / 4u;
  let at = feature / 4u * (words + 1u) * 4u + feature % 4u;
  var sum = -params.zero_point_in * bitcast<i32>(weight[at]);
  for (var i = 0u; i < words; i++) {
    sum += dot4(codes_at(start + i * 4u), weight[at + 4u + i * 4u]);
  }
  let product = guard(f32(sum) * params.scale_in * weight_scales[feature]);
$$ if "bias" in present
  return product + bias[feature];
$$ else
  return product;
$$ endif
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let quad = linear_group(group) * THREADS + lane;
  if (quad < params.quads) {
    var values = vec4<f32>();
    for (var i = 0u; i < min(4u, params.count - quad * 4u); i++) {
      values[i] = value_at(quad * 4u + i);
    }
$$ if QUANTIZED
$$ if RELU
    values = max(values, vec4<f32>());
$$ endif
    out[quad] = codes_of(
      values * params.inverse, params.zero_point_out, params.code_min, params.code_max);
$$ else
    for (var i = 0u; i < min(4u, params.count - quad * 4u); i++) {
      out[quad * 4u + i] = values[i];
    }
$$ endif
  }
}
