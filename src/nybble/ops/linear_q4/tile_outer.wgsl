// Four neighbours of one row of the gradients, and of the inputs; zero beyond the rows.
fn left_quad(quad: u32, row: u32) -> vec4<f32> {
  let at = min(row, params.rows - 1u);
$$ if WIDE
  return select(vec4<f32>(), d_out[at * (params.n / 4u) + min(quad, params.n / 4u - 1u)], row < params.rows);
$$ else
  let start = at * params.n;
  let first = quad * 4u;
  let last = params.n - 1u;
  let values = vec4<f32>(
    d_out[start + min(first, last)], d_out[start + min(first + 1u, last)],
    d_out[start + min(first + 2u, last)], d_out[start + min(first + 3u, last)]);
  return select(vec4<f32>(), values, row < params.rows);
$$ endif
}

fn right_part(quad: u32, row: u32) -> vec4<f32> {
  let at = min(row, params.rows - 1u);
$$ if WIDE
  return select(vec4<f32>(), x[at * (params.k / 4u) + min(quad, params.k / 4u - 1u)], row < params.rows);
$$ else
  let start = at * params.k;
  let first = quad * 4u;
  let last = params.k - 1u;
  let values = vec4<f32>(
    x[start + min(first, last)], x[start + min(first + 1u, last)],
    x[start + min(first + 2u, last)], x[start + min(first + 3u, last)]);
  return select(vec4<f32>(), values, row < params.rows);
$$ endif
}

fn store(row: u32, quad: u32, results: vec4<f32>) {
  let first = quad * 4u;
$$ if WIDE
  if (row < params.n && first < params.k) {
    out[row * (params.k / 4u) + quad] = results;
  }
$$ else
  for (var i = 0u; i < 4u; i++) {
    if (row < params.n && first + i < params.k) {
      out[row * params.k + first + i] = results[i];
    }
  }
$$ endif
}
