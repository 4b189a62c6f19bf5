// Depthwise convolution in float32, where sums of so few products are exact integers.
// A thread makes PIXELS_X by PIXELS_Y neighbours of one channel word and reads each input once.
{% include "std/output_stage.wgsl" %}
{# Offsets, from the block's first input position, of the lines and columns that it reads. #}
$$ set lines = []
$$ for b in range(PIXELS_Y)
$$ for i in range(KERNEL_H)
$$ set _ = lines.append(b * STRIDE_H + i * DILATION_H)
$$ endfor
$$ endfor
$$ set columns = []
$$ for a in range(PIXELS_X)
$$ for j in range(KERNEL_W)
$$ set _ = columns.append(a * STRIDE_W + j * DILATION_W)
$$ endfor
$$ endfor

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let item = linear_group(group) * THREADS + lane;
  if (item < params.items) {
    let quad = item % params.quads;
    let across = (params.w_out + PIXELS_X - 1u) / PIXELS_X;
    let down = (params.h_out + PIXELS_Y - 1u) / PIXELS_Y;
    let block = item / params.quads;
    let column = block % across * PIXELS_X;
    let row = block / across % down * PIXELS_Y;
    let image = block / across / down;
    let first_y = row * STRIDE_H - PADDING_H;
    let first_x = column * STRIDE_W - PADDING_W;
    let zero = vec4<f32>(f32(params.zero_point_in));
$$ for tap in range(KERNEL_H * KERNEL_W)
    let w{$ tap $} = vec4<f32>(unpack4xI8(weight[{$ tap $}u * params.quads + quad]));
$$ endfor
$$ for b in range(PIXELS_Y)
$$ for a in range(PIXELS_X)
    var sums{$ b $}_{$ a $} = vec4<f32>();
$$ endfor
$$ endfor
$$ for dx in columns | unique | sort
    let x{$ dx $} = first_x + {$ dx $}u;
$$ endfor
$$ for dy in lines | unique | sort
    {
      let y = first_y + {$ dy $}u;
      let start = (image * params.h + min(y, params.h - 1u)) * params.w;
$$ for dx in columns | unique | sort
      let at{$ dx $} = (start + min(x{$ dx $}, params.w - 1u)) * params.quads + quad;
      let c{$ dx $} = select(
        vec4<f32>(), vec4<f32>(unpack4xI8(x[at{$ dx $}])) - zero,
        y < params.h && x{$ dx $} < params.w);
$$ endfor
$$ for b in range(PIXELS_Y)
$$ for i in range(KERNEL_H)
$$ if b * STRIDE_H + i * DILATION_H == dy
$$ for a in range(PIXELS_X)
$$ for j in range(KERNEL_W)
      sums{$ b $}_{$ a $} = fma(
        c{$ a * STRIDE_W + j * DILATION_W $}, w{$ i * KERNEL_W + j $}, sums{$ b $}_{$ a $});
$$ endfor
$$ endfor
$$ endif
$$ endfor
$$ endfor
    }
$$ endfor
    let affine = affine_of(quad);
    let start = (image * params.h_out + row) * params.w_out + column;
$$ for b in range(PIXELS_Y)
$$ for a in range(PIXELS_X)
    if (row + {$ b $}u < params.h_out && column + {$ a $}u < params.w_out) {
      out[(start + {$ b $}u * params.w_out + {$ a $}u) * params.quads + quad] =
        output_codes(sums{$ b $}_{$ a $}, affine);
    }
$$ endfor
$$ endfor
  }
}
