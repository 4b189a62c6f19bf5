{% include "std/dot4.wgsl" %}
{% include "std/output_stage.wgsl" %}

// The input position that a tap joins to an output position; the extent or more where none is.
fn source_of(position: u32, tap: u32, stride: u32, padding: u32, dilation: u32) -> u32 {
$$ if TRANSPOSED
  let offset = position + padding - tap * dilation;
  return select(0xffffffffu, offset / stride, offset < 0x80000000u && offset % stride == 0u);
$$ else
  return position * stride + tap * dilation - padding;
$$ endif
}
$$ if ONE_GROUP

// The words of one pixel, from `start` on, times one tap of four output channels.
fn tap_sums(start: u32, first: u32, at: u32) -> vec4<i32> {
  let last = params.quads_in - 1u;
  var sums = vec4<i32>();
  for (var i = 0u; i < DEPTH; i++) {
    sums += dots4(x[start + min(first + i, last)], weight[at + i]);
  }
  return sums;
}
$$ else

// The same where the four output channels may read different groups.
fn tap_sums(start: u32, first: vec4<u32>, at: u32) -> vec4<i32> {
  let last = vec4<u32>(params.quads_in - 1u);
  var sums = vec4<i32>();
  for (var i = 0u; i < DEPTH; i++) {
    let source = start + min(first + i, last);
    let lanes = weight[at + i];
    sums += vec4<i32>(
      dot4(x[source.x], lanes.x), dot4(x[source.y], lanes.y),
      dot4(x[source.z], lanes.z), dot4(x[source.w], lanes.w));
  }
  return sums;
}
$$ endif

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
  if (word < params.words) {
    let quads_out = (params.oc + 3u) / 4u;
    let quad = word % quads_out;
    let column = word / quads_out % params.w_out;
    let line = word / quads_out / params.w_out;
    let row = line % params.h_out;
    let image = line / params.h_out * params.h;
$$ if ONE_GROUP
    let first = quad * 4u / GROUP_OUT * GROUP_IN / 4u;
$$ else
    let channels = min(vec4<u32>(quad * 4u) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.oc - 1u));
    let first = channels / GROUP_OUT * GROUP_IN / 4u;
$$ endif
    var at = quad * KERNEL_H * KERNEL_W * (DEPTH + 1u);
    var sums = vec4<i32>();
    for (var i = 0u; i < KERNEL_H; i++) {
      let y = source_of(row, i, STRIDE_H, PADDING_H, DILATION_H);
      for (var j = 0u; j < KERNEL_W; j++) {
        let source = source_of(column, j, STRIDE_W, PADDING_W, DILATION_W);
        if (y < params.h && source < params.w) {
          let start = ((image + y) * params.w + source) * params.quads_in;
          sums += tap_sums(start, first, at + 1u)
            - params.zero_point_in * bitcast<vec4<i32>>(weight[at]);
        }
        at += DEPTH + 1u;
      }
    }
    out[word] = output_codes(vec4<f32>(sums), affine_of(quad));
  }
}
