// aten.relu.default: clamp.wgsl
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> out: array<vec4<f32>>;
struct Params {
  zero: u32,
  grid_width: u32,
  words: u32,
  low: f32,
  high: f32,
  padding_0: u32,
  padding_1: u32,
  padding_2: u32,
};
@group(0) @binding(2) var<uniform> params: Params;
fn linear_group(group: vec3<u32>) -> u32 {
  return group.x + group.y * params.grid_width;
}
const THREADS = 256u;
const FLOAT = true;
