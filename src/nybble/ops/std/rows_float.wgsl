// Rows of codes times a matrix in float32, for processors without an integer dot product.
// A float32 sum of 1024 products is an exact integer; longer rows go through int32.
{% include "std/row_results.wgsl" %}
$$ set components = [".x", ".y", ".z", ".w"] if WIDE else [""]
$$ set element = "vec4<u32>" if WIDE else "u32"
$$ if IMAGE
{% include "std/image_taps.wgsl" %}
$$ endif
$$ set features = range(4 * QUADS)

fn weight_sums_of(quad: u32) -> vec4<i32> {
$$ if WIDE
  return bitcast<vec4<i32>>(weight[quad]);
$$ else
  let at = quad * 4u;
  return bitcast<vec4<i32>>(
    vec4<u32>(weight[at], weight[at + 1u], weight[at + 2u], weight[at + 3u]));
$$ endif
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  // LANES neighbouring threads share rows and differ in their output channels.
  let tile = linear_group(group);
  let block = tile % params.blocks * LANES + lane % LANES;
  let strip = tile / params.blocks * (THREADS / LANES) + lane / LANES;
  let row = strip * ROWS;
  let last = params.rows - 1u;
  let channel = min(block * {$ 4 * QUADS $}u, params.channels - {$ 4 * QUADS $}u);
  var at = params.weights_start + channel * params.length;
$$ for i in range(ROWS)
$$ for j in range(QUADS)
  var sums{$ i $}_{$ j $} = vec4<f32>();
$$ if LONG
  var totals{$ i $}_{$ j $} = vec4<i32>();
$$ endif
$$ endfor
$$ if IMAGE
  let origin{$ i $} = origin_of(min(row + {$ i $}u, last));
$$ else
  var x{$ i $} = min(row + {$ i $}u, last) * params.depth;
$$ endif
$$ endfor
$$ if IMAGE
  for (var tap = 0u; tap < KERNEL_H * KERNEL_W; tap++) {
  let step_y = tap / KERNEL_W * DILATION_H;
  let step_x = tap % KERNEL_W * DILATION_W;
$$ for i in range(ROWS)
  let y{$ i $} = origin{$ i $}.y + step_y;
  let column{$ i $} = origin{$ i $}.z + step_x;
  let inside{$ i $} = y{$ i $} < params.h && column{$ i $} < params.w;
  var x{$ i $} = select(
    0u, ((origin{$ i $}.x + y{$ i $}) * params.w + column{$ i $}) * params.depth, inside{$ i $});
$$ endfor
$$ endif
$$ if LONG
  for (var k = 0u; k < params.depth;) {
  let end = min(k + {$ 64 if WIDE else 256 $}u, params.depth);
  for (; k < end; k++) {
$$ else
  for (var k = 0u; k < params.depth; k++) {
$$ endif
$$ for j in features
    let w{$ j $} = weight[at + {$ j $}u * params.length];
$$ endfor
$$ for i in range(ROWS)
$$ if IMAGE
    let v{$ i $} = select({$ element $}(zero_codes()), x[x{$ i $}], inside{$ i $});
$$ else
    let v{$ i $} = x[x{$ i $}];
$$ endif
$$ endfor
$$ for component in components
    {
$$ for j in features
      let f{$ j $} = vec4<f32>(unpack4xI8(w{$ j $}{$ component $}));
$$ endfor
$$ for i in range(ROWS)
      {
        let c = vec4<f32>(unpack4xI8(v{$ i $}{$ component $}));
$$ for e in "xyzw"
$$ for j in range(QUADS)
        sums{$ i $}_{$ j $} = fma(
          vec4<f32>(c.{$ e $}),
          vec4<f32>({$ "f%d.%s, f%d.%s, f%d.%s, f%d.%s" % (4*j, e, 4*j+1, e, 4*j+2, e, 4*j+3, e) $}),
          sums{$ i $}_{$ j $});
$$ endfor
$$ endfor
      }
$$ endfor
    }
$$ endfor
    at += 1u;
$$ for i in range(ROWS)
    x{$ i $} += 1u;
$$ endfor
  }
$$ if LONG
$$ for i in range(ROWS)
$$ for j in range(QUADS)
  totals{$ i $}_{$ j $} += vec4<i32>(sums{$ i $}_{$ j $});
  sums{$ i $}_{$ j $} = vec4<f32>();
$$ endfor
$$ endfor
  }
$$ endif
$$ if IMAGE
  }
$$ endif
$$ for j in range(QUADS)
  let quad{$ j $} = block * {$ QUADS $}u + {$ j $}u;
  if (quad{$ j $} < params.quads_out) {
    let affine = affine_of(quad{$ j $});
    let zeros = params.zero_point_in * weight_sums_of(quad{$ j $});
$$ for i in range(ROWS)
    if (row + {$ i $}u < params.rows) {
$$ if LONG
      store(row + {$ i $}u, quad{$ j $}, vec4<f32>(totals{$ i $}_{$ j $} - zeros), affine);
$$ else
      store(row + {$ i $}u, quad{$ j $}, sums{$ i $}_{$ j $} - vec4<f32>(zeros), affine);
$$ endif
    }
$$ endfor
  }
$$ endfor
}
