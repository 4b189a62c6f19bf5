// aten.full.default: fill.wgsl
@group(0) @binding(0) var<storage, read_write> out: array<f32>;
struct Params {
  zero: u32,
  grid_width: u32,
  items: u32,
  value: f32,
};
@group(0) @binding(1) var<uniform> params: Params;
fn linear_group(group: vec3<u32>) -> u32 {
  return group.x + group.y * params.grid_width;
}
const THREADS = 256u;
