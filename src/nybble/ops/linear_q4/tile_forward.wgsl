{% include "linear_q4/inputs.wgsl" %}
{% include "linear_q4/results.wgsl" %}

fn left_quad(row: u32, depth: u32) -> vec4<f32> {
  return input_quad(min(row, params.rows - 1u), depth);
}

// Two words, four outputs by four inputs, and their scales.
struct Part {
  words: vec2<u32>,
$$ if ALIGNED
  scale: vec4<f32>,
$$ else
  scale: mat4x4<f32>,
$$ endif
}

fn right_part(quad: u32, depth: u32) -> Part {
  let column = min(quad, params.down * 2u - 1u);
  let at = min(depth, params.quads - 1u);
  var part: Part;
  part.words = weight[at * params.down * 2u + column];
$$ if ALIGNED
  part.scale = scale_quad(at * 4u / params.group, column);
$$ else
$$ for j in range(4)
  part.scale[{$ j $}] = scale_quad(min(at * 4u + {$ j $}u, params.k - 1u) / params.group, column);
$$ endfor
$$ endif
  return part;
}

// Four outputs of each of four inputs.
fn values_of(part: Part) -> mat4x4<f32> {
  let codes = transpose(mat4x4<f32>(
    low_codes(part.words.x), high_codes(part.words.x),
    low_codes(part.words.y), high_codes(part.words.y)));
$$ set scale = "part.scale" if ALIGNED else "part.scale[%d]"
  return mat4x4<f32>(
$$ for j in range(4)
    codes[{$ j $}] * {$ scale if ALIGNED else scale % j $}{$ "," if j < 3 else ");" $}
$$ endfor
}
