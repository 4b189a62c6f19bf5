{% include "linear_q4/gradients.wgsl" %}

fn left_quad(row: u32, depth: u32) -> vec4<f32> {
  return gradient_quad(min(row, params.rows - 1u), depth);
}

// Two words, four rows of the weight by four columns, and their scales.
struct Part {
  words: vec2<u32>,
$$ if ALIGNED
  scale: vec4<f32>,
$$ else
  scale: mat4x4<f32>,
$$ endif
}

fn right_part(quad: u32, depth: u32) -> Part {
  let column = min(quad, params.quads - 1u);
  let at = min(depth, params.down * 2u - 1u);
  var part: Part;
  part.words = weight[column * params.down * 2u + at];
$$ if ALIGNED
  part.scale = scale_within(column * 4u, at);
$$ else
$$ for j in range(4)
  part.scale[{$ j $}] = scale_within(column * 4u + {$ j $}u, at);
$$ endfor
$$ endif
  return part;
}

// Four columns of each of four rows.
fn values_of(part: Part) -> mat4x4<f32> {
$$ if ALIGNED
  let scale = part.scale;
$$ else
  let scale = transpose(part.scale);
$$ endif
  return mat4x4<f32>(
    low_codes(part.words.x) * {$ "scale.x" if ALIGNED else "scale[0]" $},
    high_codes(part.words.x) * {$ "scale.y" if ALIGNED else "scale[1]" $},
    low_codes(part.words.y) * {$ "scale.z" if ALIGNED else "scale[2]" $},
    high_codes(part.words.y) * {$ "scale.w" if ALIGNED else "scale[3]" $});
}
