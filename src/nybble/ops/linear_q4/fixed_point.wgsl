// A thread makes the fixed-point numbers of one block of 32 inputs: integers of 14 bits and a
// sign over a power of two, each in two bytes, the higher ones first.
$$ set quads = range(8)

fn largest(v: vec4<u32>) -> u32 {
  return max(max(v.x, v.y), max(v.z, v.w));
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let at = linear_group(group) * THREADS + lane;
  if (at >= params.rows * params.blocks) {
    return;
  }
  var size = 0u;
$$ for q in quads
  let v_{$ q $} = x[at * 8u + {$ q $}u];
  size = max(size, largest(bitcast<vec4<u32>>(v_{$ q $}) & vec4<u32>(0x7fffffffu)));
$$ endfor
  // Values below 2^(e + 1) over 2^(e - 13); both powers stay normal numbers.
  let exponent = u32(clamp(i32(size >> 23u) - 13, 2, 252));
  let inverse = bitcast<f32>((254u - exponent) << 23u);
  let finite = size < 0x7f800000u;
$$ for q in quads
  let n_{$ q $} = select(vec4<i32>(), vec4<i32>(round(v_{$ q $} * inverse)), finite);
$$ endfor
{% include "linear_q4/limbs.wgsl" %}
  x_scales[at % params.blocks * params.rows + at / params.blocks] =
    bitcast<f32>(select(0x7fc00000u, exponent << 23u, finite));
}
