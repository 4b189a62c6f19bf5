// aten.max_pool2d_with_indices.default: max_pool2d.wgsl
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(2) var<storage, read_write> indices: array<i32>;
struct Params {
  zero: u32,
  grid_width: u32,
  elements: u32,
  h: i32,
  w: i32,
  oh: i32,
  ow: i32,
  kernel_h: i32,
  kernel_w: i32,
  stride_h: i32,
  stride_w: i32,
  padding_h: i32,
  padding_w: i32,
  dilation_h: i32,
  dilation_w: i32,
  padding_0: u32,
};
@group(0) @binding(3) var<uniform> params: Params;
fn linear_group(group: vec3<u32>) -> u32 {
  return group.x + group.y * params.grid_width;
}
const THREADS = 64u;
