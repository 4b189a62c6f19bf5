// The scales of four output channels from ``quad * 4`` on, in one group.
fn scale_quad(part: u32, quad: u32) -> vec4<f32> {
$$ if WIDE
  return scales[part * params.scale_row + quad];
$$ else
  let last = params.scale_row - 1u;
  let at = part * params.scale_row;
  let first = quad * 4u;
  return vec4<f32>(
    scales[at + min(first, last)], scales[at + min(first + 1u, last)],
    scales[at + min(first + 2u, last)], scales[at + min(first + 3u, last)]);
$$ endif
}
