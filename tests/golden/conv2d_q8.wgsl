// et_vk.q8ta_conv2d.default: direct.wgsl
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> weight: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> weight_scales: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> bias: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> out: array<u32>;
struct Params {
  zero: u32,
  grid_width: u32,
  words: u32,
  h: u32,
  w: u32,
  h_out: u32,
  w_out: u32,
  quads_in: u32,
  oc: u32,
  scale_in: f32,
  zero_point_in: i32,
  inverse: f32,
  zero_point_out: i32,
  code_min: i32,
  code_max: i32,
  padding_0: u32,
};
@group(0) @binding(5) var<uniform> params: Params;
fn linear_group(group: vec3<u32>) -> u32 {
  return group.x + group.y * params.grid_width;
}
const THREADS = 64u;
const TRANSPOSED = false;
const KERNEL_H = 3u;
const KERNEL_W = 3u;
const STRIDE_H = 2u;
const STRIDE_W = 1u;
const PADDING_H = 1u;
const PADDING_W = 0u;
const DILATION_H = 1u;
const DILATION_W = 1u;
const GROUP_IN = 3u;
const GROUP_OUT = 2u;
const DEPTH = 2u;
const ONE_GROUP = false;
const QUANTIZED = true;
const RELU = false;
