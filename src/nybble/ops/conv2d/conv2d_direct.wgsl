{% include "conv2d/finish.wgsl" %}

{% include "conv2d/item.wgsl" %}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let item = item_of(linear_group(group) * THREADS + lane);
  if (item.image < params.images) {
    let inputs = params.ic / params.groups;
    let taps = u32(params.kh * params.kw);
    let row = i32(item.pixel) / params.ow * params.stride_h - params.padding_h;
    let column = i32(item.pixel) % params.ow * params.stride_w - params.padding_w;
    let plane = u32(params.h * params.w);
    var source = (item.image * params.ic + item.part * inputs) * plane;
$$ for j in range(TILE)
    // Beyond the group's channels the last one is read again, and not stored.
    var weight_{$ j $} = (item.first + min({$ j $}u, item.channels - 1u)) * inputs * taps;
    var sum_{$ j $} = 0.0;
$$ endfor
    for (var c = 0u; c < inputs; c++) {
      for (var i = 0; i < params.kh; i++) {
        let y = row + i * params.dilation_h;
        if (y >= 0 && y < params.h) {
          for (var j = 0; j < params.kw; j++) {
            let at = column + j * params.dilation_w;
            if (at >= 0 && at < params.w) {
              let value = x[source + u32(y * params.w + at)];
              let tap = u32(i * params.kw + j);
$$ for j in range(TILE)
              sum_{$ j $} += value * weight[weight_{$ j $} + tap];
$$ endfor
            }
          }
        }
      }
      source += plane;
$$ for j in range(TILE)
      weight_{$ j $} += taps;
$$ endfor
    }
    let target_at = (item.image * params.oc + item.first) * params.pixels + item.pixel;
$$ for j in range(TILE)
    if ({$ j $}u < item.channels) {
      out[target_at + {$ j $}u * params.pixels] = finish(sum_{$ j $}, item.first + {$ j $}u);
    }
$$ endfor
  }
}
