{% include "conv2d/finish.wgsl" %}

// Four output channels of four neighbouring pixels a thread, four input channels a step.
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let item = linear_group(group) * THREADS + lane;
  let pixel_quads = params.pixels / 4u;
  let channel_quads = (params.oc + 3u) / 4u;
  if (item < pixel_quads * channel_quads * params.images) {
    let quad = item % pixel_quads;
    let channel = item / pixel_quads % channel_quads * 4u;
    let image = item / pixel_quads / channel_quads;
    let steps = params.ic / 4u;
    var source = image * params.ic * pixel_quads + quad;
$$ for j in range(4)
    // Beyond the last channel that one is read again, and not stored.
    let weight_{$ j $} = min(channel + {$ j $}u, params.oc - 1u) * steps;
    var sum_{$ j $} = vec4<f32>();
$$ endfor
    for (var c = 0u; c < steps; c++) {
      let pixels = mat4x4<f32>(
        x[source],
        x[source + pixel_quads],
        x[source + 2u * pixel_quads],
        x[source + 3u * pixel_quads]);
      source += 4u * pixel_quads;
$$ for j in range(4)
      sum_{$ j $} += pixels * weight[weight_{$ j $} + c];
$$ endfor
    }
$$ for j in range(4)
    if (channel + {$ j $}u < params.oc) {
      out[(image * params.oc + channel + {$ j $}u) * pixel_quads + quad] =
        finish_quad(sum_{$ j $}, channel + {$ j $}u);
    }
$$ endfor
  }
}
