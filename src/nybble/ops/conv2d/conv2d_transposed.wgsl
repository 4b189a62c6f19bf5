{% include "conv2d/finish.wgsl" %}

{% include "conv2d/item.wgsl" %}

// Gathers: an input row reaches an output row where their distance is a multiple of the stride.
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let item = item_of(linear_group(group) * THREADS + lane);
  if (item.image < params.images) {
    let inputs = params.ic / params.groups;
    let outputs = params.oc / params.groups;
    let taps = u32(params.kh * params.kw);
    let row = i32(item.pixel) / params.ow + params.padding_h;
    let column = i32(item.pixel) % params.ow + params.padding_w;
    let plane = u32(params.h * params.w);
    let source = (item.image * params.ic + item.part * inputs) * plane;
    let weights = item.part * inputs * outputs + (item.first - item.part * outputs);
$$ for j in range(TILE)
    var sum_{$ j $} = 0.0;
$$ endfor
    for (var i = 0; i < params.kh; i++) {
      let down = row - i * params.dilation_h;
      let y = down / params.stride_h;
      if (down >= 0 && y * params.stride_h == down && y < params.h) {
        for (var j = 0; j < params.kw; j++) {
          let across = column - j * params.dilation_w;
          let at = across / params.stride_w;
          if (across >= 0 && at * params.stride_w == across && at < params.w) {
            let tap = u32(i * params.kw + j);
            for (var c = 0u; c < inputs; c++) {
              let value = x[source + c * plane + u32(y * params.w + at)];
              let first = weights + c * outputs;
$$ for j in range(TILE)
              sum_{$ j $} += value
                * weight[(first + min({$ j $}u, item.channels - 1u)) * taps + tap];
$$ endfor
            }
          }
        }
      }
    }
    let target_at = (item.image * params.oc + item.first) * params.pixels + item.pixel;
$$ for j in range(TILE)
    if ({$ j $}u < item.channels) {
      out[target_at + {$ j $}u * params.pixels] = finish(sum_{$ j $}, item.first + {$ j $}u);
    }
$$ endfor
  }
}
