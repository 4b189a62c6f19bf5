{% include "conv2d/finish.wgsl" %}

const TILE = 64u;
const DEPTH = 16u;
// One column more than a tile: threads that store a column then meet no bank twice.
const PITCH = 65u;
var<workgroup> left: array<f32, 1040>;
var<workgroup> right: array<f32, 1040>;

// The input element that the ``along``-th weight of a channel meets at a pixel, 0 in the padding.
fn tap_of(image: u32, along: u32, pixel: u32) -> f32 {
  let channel = along / (KH * KW);
  let tap = i32(along % (KH * KW));
  let y = i32(pixel) / params.ow * params.stride_h - params.padding_h
    + tap / i32(KW) * params.dilation_h;
  let column = i32(pixel) % params.ow * params.stride_w - params.padding_w
    + tap % i32(KW) * params.dilation_w;
  let inside = channel < params.ic && pixel < params.pixels
    && y >= 0 && y < params.h && column >= 0 && column < params.w;
  let at = (image * params.ic + channel) * u32(params.h * params.w) + u32(y * params.w + column);
  return select(0.0, x[select(0u, at, inside)], inside);
}

// Output channels times pixels as a tiled matrix product over input channels and taps.
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let tile = linear_group(group);
  let columns = (params.pixels + TILE - 1u) / TILE;
  let rows = (params.oc + TILE - 1u) / TILE;
  let first_pixel = tile % columns * TILE;
  let first_channel = tile / columns % rows * TILE;
  // A surplus workgroup of a folded grid repeats the last image: no branch around barriers.
  let image = min(tile / columns / rows, params.images - 1u);
  let length = params.ic * KH * KW;
  let across = lane % 16u;
  let down = lane / 16u;
$$ for i in range(4)
  var sums_{$ i $} = vec4<f32>();
$$ endfor
  for (var first = 0u; first < length; first += DEPTH) {
    for (var i = 0u; i < 4u; i++) {
      let along = first + across;
      let channel = first_channel + down + i * 16u;
      let inside = along < length && channel < params.oc;
      left[across * PITCH + down + i * 16u] =
        select(0.0, weight[select(0u, channel * length + along, inside)], inside);
      let depth = lane / TILE + i * 4u;
      right[depth * PITCH + lane % TILE] =
        tap_of(image, first + depth, first_pixel + lane % TILE);
    }
    workgroupBarrier();
    for (var depth = 0u; depth < DEPTH; depth++) {
      let at = depth * PITCH;
      let pixels = vec4<f32>(
        right[at + across], right[at + across + 16u],
        right[at + across + 32u], right[at + across + 48u]);
$$ for i in range(4)
      sums_{$ i $} += left[at + down + {$ i * 16 $}u] * pixels;
$$ endfor
    }
    workgroupBarrier();
  }
$$ for i in range(4)
  {
    let channel = first_channel + down + {$ i * 16 $}u;
    for (var j = 0u; j < 4u; j++) {
      let pixel = first_pixel + across + j * 16u;
      if (channel < params.oc && pixel < params.pixels) {
        out[(image * params.oc + channel) * params.pixels + pixel] =
          finish(sums_{$ i $}[j], channel);
      }
    }
  }
$$ endfor
}
