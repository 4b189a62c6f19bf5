// et_vk.q8ta_add.default: add.wgsl
@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read> b: array<u32>;
@group(0) @binding(2) var<storage, read_write> out: array<u32>;
struct Params {
  zero: u32,
  grid_width: u32,
  words: u32,
  scale_a: f32,
  zero_point_a: i32,
  scale_b: f32,
  zero_point_b: i32,
  alpha: f32,
  inverse: f32,
  zero_point_out: i32,
  code_min: i32,
  code_max: i32,
};
@group(0) @binding(3) var<uniform> params: Params;
fn linear_group(group: vec3<u32>) -> u32 {
  return group.x + group.y * params.grid_width;
}
const THREADS = 64u;
