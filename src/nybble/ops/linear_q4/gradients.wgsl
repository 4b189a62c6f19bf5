// Four gradients of a row of outputs; zero beyond its end.
fn gradient_quad(row: u32, quad: u32) -> vec4<f32> {
$$ if WIDE
  return select(vec4<f32>(), d_out[row * (params.n / 4u) + quad], quad < params.n / 4u);
$$ else
  let first = quad * 4u;
  let at = row * params.n + first;
  return vec4<f32>(
    select(0.0, d_out[at], first < params.n), select(0.0, d_out[at + 1u], first + 1u < params.n),
    select(0.0, d_out[at + 2u], first + 2u < params.n),
    select(0.0, d_out[at + 3u], first + 3u < params.n));
$$ endif
}

// Columns beyond the last group, and rows beyond the matrix, have scale 0.
fn scale_within(column: u32, quad: u32) -> vec4<f32> {
  let part = column / params.group;
  let first = quad * 4u;
  let inside = part < params.parts && column < params.k;
  let rows = vec4<u32>(first, first + 1u, first + 2u, first + 3u) < vec4<u32>(params.n);
  return select(vec4<f32>(), scale_quad(min(part, params.parts - 1u), quad), rows & vec4<bool>(inside));
}

fn store(row: u32, quad: u32, results: vec4<f32>) {
  let first = quad * 4u;
$$ if WIDE
  if (row < params.rows && first < params.k) {
    out[row * (params.k / 4u) + quad] = results;
  }
$$ else
  for (var i = 0u; i < 4u; i++) {
    if (row < params.rows && first + i < params.k) {
      out[row * params.k + first + i] = results[i];
    }
  }
$$ endif
}
