// et_vk.sdpa.default: attention.wgsl
@group(0) @binding(0) var<storage, read> q: array<f32>;
@group(0) @binding(1) var<storage, read> k: array<f32>;
@group(0) @binding(2) var<storage, read> v: array<f32>;
@group(0) @binding(3) var<storage, read> mask: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;
struct Params {
  zero: u32,
  grid_width: u32,
  kv_heads: u32,
  capacity: u32,
  length: u32,
  start: u32,
  depth: u32,
  width: u32,
  mask_key: u32,
  mask_query: u32,
  mask_head: u32,
  mask_batch: u32,
  batches: u32,
  heads: u32,
  queries: u32,
  stride: u32,
  scale: f32,
  padding_0: u32,
  padding_1: u32,
  padding_2: u32,
};
@group(0) @binding(5) var<uniform> params: Params;
fn linear_group(group: vec3<u32>) -> u32 {
  return group.x + group.y * params.grid_width;
}
const ROWS = 3u;
const PARTS = 1u;
const CACHED = false;
const APPENDED = false;
const CAUSAL = false;
