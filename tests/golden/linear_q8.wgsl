// et_vk.q8ta_linear.default: flat.wgsl
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> weight: array<u32>;
@group(0) @binding(2) var<storage, read> weight_scales: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<u32>;
struct Params {
  zero: u32,
  grid_width: u32,
  quads: u32,
  count: u32,
  depth: u32,
  features: u32,
  last_word: u32,
  scale_in: f32,
  zero_point_in: i32,
  inverse: f32,
  zero_point_out: i32,
  code_min: i32,
  code_max: i32,
  padding_0: u32,
  padding_1: u32,
  padding_2: u32,
};
@group(0) @binding(4) var<uniform> params: Params;
fn linear_group(group: vec3<u32>) -> u32 {
  return group.x + group.y * params.grid_width;
}
const THREADS = 64u;
const QUANTIZED = true;
const RELU = true;
