// Images by height and width; each thread makes one pixel of one plane.
$$ if LINEAR
struct Taps { low: u32, high: u32, share: f32 }

fn taps(place: u32, factor: f32, size: u32) -> Taps {
$$ if CORNERS
  let at = f32(place) * factor;
$$ else
  let at = max((f32(place) + 0.5) * factor - 0.5, 0.0);
$$ endif
  let low = min(u32(at), size - 1u);
  return Taps(low, min(low + 1u, size - 1u), clamp(at - f32(low), 0.0, 1.0));
}

$$ endif
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let item = linear_group(group) * THREADS + lane;
  if (item < params.elements) {
    let column = item % params.out_width;
    let row = item / params.out_width % params.out_height;
    let plane = item / params.out_width / params.out_height * params.height * params.width;
$$ if LINEAR
    let across = taps(column, params.factor_width, params.width);
    let down = taps(row, params.factor_height, params.height);
    let upper = plane + down.low * params.width;
    let lower = plane + down.high * params.width;
    let top = x[upper + across.low] * (1.0 - across.share) + x[upper + across.high] * across.share;
    let bottom = x[lower + across.low] * (1.0 - across.share) + x[lower + across.high] * across.share;
    out[item] = top * (1.0 - down.share) + bottom * down.share;
$$ else
    let source_row = min(u32(f32(row) * params.factor_height), params.height - 1u);
    let source_column = min(u32(f32(column) * params.factor_width), params.width - 1u);
    out[item] = x[plane + source_row * params.width + source_column];
$$ endif
  }
}
