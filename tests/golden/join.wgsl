// nybble.concat.default: concat.wgsl
@group(0) @binding(0) var<storage, read> x_0: array<f32>;
@group(0) @binding(1) var<storage, read> x_1: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
struct Params {
  zero: u32,
  grid_width: u32,
  elements: u32,
  whole: u32,
  row_0: u32,
  row_1: u32,
  row_2: u32,
  row_3: u32,
  row_4: u32,
  row_5: u32,
  row_6: u32,
  padding_0: u32,
};
@group(0) @binding(3) var<uniform> params: Params;
fn linear_group(group: vec3<u32>) -> u32 {
  return group.x + group.y * params.grid_width;
}
const THREADS = 64u;
const NARROW = false;
