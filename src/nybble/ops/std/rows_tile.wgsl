// Rows of codes times a matrix by packed dot products: a workgroup makes TILE_M rows by TILE_N
// output channels, a thread ROWS by COLUMNS of them, in steps of STEP vectors of sixteen codes.
// The next step's vectors travel through registers while the current one is multiplied.
{% include "std/dot4.wgsl" %}
{% include "std/row_results.wgsl" %}
{% include "std/image_words.wgsl" if IMAGE else "std/row_words.wgsl" %}
$$ set threads_x = TILE_N // COLUMNS
$$ set threads_y = TILE_M // ROWS
$$ set threads = threads_x * threads_y
$$ set full_x = TILE_M * STEP // threads
$$ set rest_x = TILE_M * STEP % threads
$$ set full_w = TILE_N * STEP // threads
$$ set rest_w = TILE_N * STEP % threads
$$ set loads_x = range(full_x + (1 if rest_x else 0))
$$ set loads_w = range(full_w + (1 if rest_w else 0))
$$ set stride = 1 if WIDE else 4
{# Neighbouring threads store different vectors of one row: a swizzle spreads them over banks. #}
$$ set swizzled = threads_y >= 16 or (threads_y == 8 and STEP <= 2)

var<workgroup> tile_x: array<array<array<array<vec4<u32>, {$ threads_y $}>, ROWS>, STEP>, 2>;
var<workgroup> tile_w: array<array<array<array<vec4<u32>, {$ threads_x $}>, COLUMNS>, STEP>, 2>;

@compute @workgroup_size({$ threads $})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let tx = lane % {$ threads_x $}u;
  let ty = lane / {$ threads_x $}u;
  let tile = linear_group(group);
  let first_row = tile / params.tiles_across * TILE_M;
  let first_channel = tile % params.tiles_across * TILE_N;
$$ for q in loads_x
  let ex{$ q $} = lane + {$ q * threads $}u;
  let rx{$ q $} = ex{$ q $} / STEP;
  let kx{$ q $} = ex{$ q $} % STEP;
  let yx{$ q $} = {$ "(rx%d %% %du) ^ (kx%d * 4u)" % (q, threads_y, q) if swizzled else "rx%d %% %du" % (q, threads_y) $};
  let ox{$ q $} = origin_of(min(first_row + rx{$ q $}, params.rows - 1u));
  var px{$ q $} = kx{$ q $} * {$ stride $}u;
  var vx{$ q $} = vec4<u32>();
$$ if q == full_x
  if (lane < {$ rest_x $}u) {
    vx{$ q $} = codes_from(ox{$ q $}, px{$ q $});
  }
$$ else
  vx{$ q $} = codes_from(ox{$ q $}, px{$ q $});
$$ endif
$$ endfor
$$ for q in loads_w
  let ew{$ q $} = lane + {$ q * threads $}u;
  let cw{$ q $} = ew{$ q $} % TILE_N;
  let kw{$ q $} = ew{$ q $} / TILE_N;
  var pw{$ q $} = params.weights_start + kw{$ q $} * params.channels + first_channel + cw{$ q $};
  var vw{$ q $} = vec4<u32>();
$$ if q == full_w
  if (lane < {$ rest_w $}u) {
    vw{$ q $} = weight[pw{$ q $}];
  }
$$ else
  vw{$ q $} = weight[pw{$ q $}];
$$ endif
$$ endfor
$$ for i in range(ROWS)
$$ for j in range(COLUMNS)
  var s{$ i $}_{$ j $} = 0;
$$ endfor
$$ endfor
  for (var step = 0u; step < params.steps; step += 2u) {
$$ for half in range(2)
$$ for q in loads_x
$$ if q == full_x
    if (lane < {$ rest_x $}u) {
      tile_x[{$ half $}][kx{$ q $}][rx{$ q $} / {$ threads_y $}u][yx{$ q $}] = vx{$ q $};
    }
$$ else
    tile_x[{$ half $}][kx{$ q $}][rx{$ q $} / {$ threads_y $}u][yx{$ q $}] = vx{$ q $};
$$ endif
$$ endfor
$$ for q in loads_w
$$ if q == full_w
    if (lane < {$ rest_w $}u) {
      tile_w[{$ half $}][kw{$ q $}][cw{$ q $} / {$ threads_x $}u][cw{$ q $} % {$ threads_x $}u] = vw{$ q $};
    }
$$ else
    tile_w[{$ half $}][kw{$ q $}][cw{$ q $} / {$ threads_x $}u][cw{$ q $} % {$ threads_x $}u] = vw{$ q $};
$$ endif
$$ endfor
    workgroupBarrier();
$$ if half == 1
    if (step + 2u < params.steps) {
$$ else
    {
$$ endif
$$ for q in loads_x
      px{$ q $} += STEP * {$ stride $}u;
$$ if q == full_x
      if (lane < {$ rest_x $}u) {
        vx{$ q $} = codes_from(ox{$ q $}, px{$ q $});
      }
$$ else
      vx{$ q $} = codes_from(ox{$ q $}, px{$ q $});
$$ endif
$$ endfor
$$ for q in loads_w
      pw{$ q $} += STEP * params.channels;
$$ if q == full_w
      if (lane < {$ rest_w $}u) {
        vw{$ q $} = weight[pw{$ q $}];
      }
$$ else
      vw{$ q $} = weight[pw{$ q $}];
$$ endif
$$ endfor
    }
$$ for k in range(STEP)
    {
$$ for j in range(COLUMNS)
      let w{$ j $} = tile_w[{$ half $}][{$ k $}][{$ j $}][tx];
$$ endfor
$$ for i in range(ROWS)
      {
        let c = tile_x[{$ half $}][{$ k $}][{$ i $}][{$ "ty ^ %du" % (4 * k) if swizzled else "ty" $}];
$$ for e in "xyzw"
$$ for j in range(COLUMNS)
        s{$ i $}_{$ j $} += dot4(c.{$ e $}, w{$ j $}.{$ e $});
$$ endfor
$$ endfor
      }
$$ endfor
    }
$$ endfor
$$ endfor
  }
$$ for j in range(0, COLUMNS, 4)
  let quad{$ j $} = first_channel / 4u + tx + {$ j // 4 * threads_x $}u;
  if (quad{$ j $} < params.quads_out) {
    let affine = affine_of(quad{$ j $});
    let zeros = params.zero_point_in * bitcast<vec4<i32>>(weight[quad{$ j $}]);
$$ for i in range(ROWS)
    if (first_row + ty + {$ i * threads_y $}u < params.rows) {
      let sums = vec4<i32>({$ "s%d_%d, s%d_%d, s%d_%d, s%d_%d" % (i, j, i, j+1, i, j+2, i, j+3) $});
      store(
        first_row + ty + {$ i * threads_y $}u, quad{$ j $}, vec4<f32>(sums - zeros), affine);
    }
$$ endfor
  }
$$ endfor
}
