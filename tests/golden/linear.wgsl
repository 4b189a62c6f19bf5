// aten.linear.default: matrix_direct.wgsl
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
struct Params {
  zero: u32,
  grid_width: u32,
  m: u32,
  n: u32,
  k: u32,
  matrices: u32,
  padding_0: u32,
  padding_1: u32,
};
@group(0) @binding(3) var<uniform> params: Params;
fn linear_group(group: vec3<u32>) -> u32 {
  return group.x + group.y * params.grid_width;
}
const WEIGHT_ROWS = true;
const WIDTH = 4u;
const ROWS = 2u;
const THREADS = 64u;
