// aten._softmax.default: softmax.wgsl
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
struct Params {
  zero: u32,
  grid_width: u32,
  rows: u32,
  length: u32,
  inner: u32,
  padding_0: u32,
  padding_1: u32,
  padding_2: u32,
};
@group(0) @binding(2) var<uniform> params: Params;
fn linear_group(group: vec3<u32>) -> u32 {
  return group.x + group.y * params.grid_width;
}
const WIDE = true;
const THREADS = 64u;
const LOGARITHM = false;
