// aten.convolution.default: conv2d_direct.wgsl
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
struct Params {
  zero: u32,
  grid_width: u32,
  images: u32,
  pixels: u32,
  ow: i32,
  ic: u32,
  oc: u32,
  groups: u32,
  h: i32,
  w: i32,
  kh: i32,
  kw: i32,
  stride_h: i32,
  stride_w: i32,
  padding_h: i32,
  padding_w: i32,
  dilation_h: i32,
  dilation_w: i32,
  padding_0: u32,
  padding_1: u32,
};
@group(0) @binding(4) var<uniform> params: Params;
fn linear_group(group: vec3<u32>) -> u32 {
  return group.x + group.y * params.grid_width;
}
const THREADS = 64u;
const TILE = 3u;
const CLAMPED = false;
