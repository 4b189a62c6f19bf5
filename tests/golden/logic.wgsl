// aten.where.self: map_broadcast.wgsl
@group(0) @binding(0) var<storage, read> condition: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> other: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<vec4<f32>>;
struct Params {
  zero: u32,
  grid_width: u32,
  words: u32,
  elements: u32,
  size_0: u32,
  size_1: u32,
  size_2: u32,
  size_3: u32,
  size_4: u32,
  size_5: u32,
  size_6: u32,
  size_7: u32,
  condition_stride_0: u32,
  condition_stride_1: u32,
  condition_stride_2: u32,
  condition_stride_3: u32,
  condition_stride_4: u32,
  condition_stride_5: u32,
  condition_stride_6: u32,
  condition_stride_7: u32,
  x_stride_0: u32,
  x_stride_1: u32,
  x_stride_2: u32,
  x_stride_3: u32,
  x_stride_4: u32,
  x_stride_5: u32,
  x_stride_6: u32,
  x_stride_7: u32,
  other_stride_0: u32,
  other_stride_1: u32,
  other_stride_2: u32,
  other_stride_3: u32,
  other_stride_4: u32,
  other_stride_5: u32,
  other_stride_6: u32,
  other_stride_7: u32,
};
@group(0) @binding(4) var<uniform> params: Params;
fn linear_group(group: vec3<u32>) -> u32 {
  return group.x + group.y * params.grid_width;
}
const THREADS = 64u;
const AXES = 2u;
