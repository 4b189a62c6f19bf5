{% include "std/nan.wgsl" %}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let item = linear_group(group) * THREADS + lane;
  if (item < params.elements) {
    let pixel = item % params.pixels;
    let plane = item / params.pixels;
    let place = (plane / params.channels * params.pixels + pixel) * 2u;
    let last = vec2<f32>(f32(params.width - 1u), f32(params.height - 1u));
    let raw = (vec4<f32>(grid[place], grid[place + 1u], -1.0, -1.0) + 1.0) * 0.5
      * vec4<f32>(last, last);
    let at = clamp(select(raw, vec4<f32>(), is_nan_of(raw)).xy, vec2<f32>(), last);
    let low = vec2<u32>(at);
    let high = min(low + 1u, vec2<u32>(params.width - 1u, params.height - 1u));
    let share = at - vec2<f32>(low);
    let upper = plane * params.height * params.width + low.y * params.width;
    let lower = plane * params.height * params.width + high.y * params.width;
    let top = x[upper + low.x] * (1.0 - share.x) + x[upper + high.x] * share.x;
    let bottom = x[lower + low.x] * (1.0 - share.x) + x[lower + high.x] * share.x;
    out[item] = top * (1.0 - share.y) + bottom * share.y;
  }
}
