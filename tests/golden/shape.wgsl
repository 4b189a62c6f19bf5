// aten.permute_copy.default: gather_words.wgsl
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
struct Params {
  zero: u32,
  grid_width: u32,
  elements: u32,
  offset: u32,
  size_0: u32,
  size_1: u32,
  size_2: u32,
  size_3: u32,
  size_4: u32,
  size_5: u32,
  size_6: u32,
  size_7: u32,
  stride_0: u32,
  stride_1: u32,
  stride_2: u32,
  stride_3: u32,
  stride_4: u32,
  stride_5: u32,
  stride_6: u32,
  stride_7: u32,
};
@group(0) @binding(2) var<uniform> params: Params;
fn linear_group(group: vec3<u32>) -> u32 {
  return group.x + group.y * params.grid_width;
}
const THREADS = 64u;
const AXES = 2u;
