// aten.mean.dim: reduce_thread.wgsl
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
struct Params {
  zero: u32,
  grid_width: u32,
  results: u32,
  length: u32,
  kept_size_0: u32,
  kept_size_1: u32,
  kept_size_2: u32,
  kept_size_3: u32,
  kept_stride_0: u32,
  kept_stride_1: u32,
  kept_stride_2: u32,
  kept_stride_3: u32,
  reduced_size_0: u32,
  reduced_size_1: u32,
  reduced_size_2: u32,
  reduced_size_3: u32,
  reduced_stride_0: u32,
  reduced_stride_1: u32,
  reduced_stride_2: u32,
  reduced_stride_3: u32,
  weight: f32,
  padding_0: u32,
  padding_1: u32,
  padding_2: u32,
};
@group(0) @binding(2) var<uniform> params: Params;
fn linear_group(group: vec3<u32>) -> u32 {
  return group.x + group.y * params.grid_width;
}
const THREADS = 64u;
const KEPT = 2u;
const REDUCED = 1u;
