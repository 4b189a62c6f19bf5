// quantized_decomposed.quantize_per_tensor.default: quantize_flat.wgsl
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
struct Params {
  zero: u32,
  grid_width: u32,
  words: u32,
  inverse: f32,
  zero_point: i32,
  code_min: i32,
  code_max: i32,
  padding_0: u32,
};
@group(0) @binding(2) var<uniform> params: Params;
fn linear_group(group: vec3<u32>) -> u32 {
  return group.x + group.y * params.grid_width;
}
const THREADS = 256u;
const WORDS = 4u;
