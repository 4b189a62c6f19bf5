// Rows of codes times a matrix on the matrix units: a workgroup makes TILE_M rows by TILE_N
// output channels, each of its subgroups (ACROSS by DOWN, of 32 threads) a part of them, in steps
// of STEP vectors of sixteen codes. The next step's vectors travel through registers.
{% include "std/row_results.wgsl" %}
{% include "std/image_words.wgsl" if IMAGE else "std/row_words.wgsl" %}
$$ set threads = 32 * ACROSS * DOWN
$$ set part_m = TILE_M // DOWN
$$ set part_n = TILE_N // ACROSS
$$ set blocks_m = range(part_m // 16)
$$ set blocks_n = range(part_n // 16)
{# Odd: the same vector of eight rows lies in as many banks. #}
$$ set pitch = STEP + 1
$$ set quads = part_n // 4
$$ set strip = quads + 1
$$ set loads_x = range(TILE_M * STEP // threads)
$$ set loads_w = range(TILE_N * STEP // threads)
$$ set stride = 1 if WIDE else 4
{# A branch in a large tile's loop costs an H200 a tenth of its time: it reads a step in vain. #}
$$ set branch = TILE_M * TILE_N < 16384

var<workgroup> tile: array<vec4<u32>, {$ [(TILE_M + TILE_N) * pitch, 16 * ACROSS * DOWN * strip] | max $}>;

// The row of a tile's vector: eight neighbouring threads store to different banks.
fn line_of(vector: u32) -> u32 {
  let line = vector / STEP;
$$ if STEP == 4
  return (line & 0xfffffff8u) | ((line >> 1u) & 3u) | ((line & 1u) << 2u);
$$ else
  return line;
$$ endif
}

@compute @workgroup_size({$ threads $})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32,
        @builtin(subgroup_id) part: u32, @builtin(subgroup_invocation_id) thread: u32) {
  let place = linear_group(group);
  let across = place % params.tiles_across;
  let first_row = place / params.tiles_across * TILE_M;
  let part_row = part / ACROSS * {$ part_m $}u;
  let part_channel = part % ACROSS * {$ part_n $}u;
$$ for q in loads_x
  let line_x{$ q $} = line_of(lane + {$ q * threads $}u);
  let to_x{$ q $} = line_x{$ q $} * {$ pitch $}u + lane % STEP;
  let origin{$ q $} = origin_of(min(first_row + line_x{$ q $}, params.rows - 1u));
  var next_x{$ q $} = codes_from(origin{$ q $}, lane % STEP * {$ stride $}u);
$$ endfor
  var next_from = params.weights_start + across * params.steps * {$ TILE_N * STEP $}u + lane;
$$ for q in loads_w
  let to_w{$ q $} = (TILE_M + line_of(lane + {$ q * threads $}u)) * {$ pitch $}u + lane % STEP;
  var next_w{$ q $} = weight[next_from + {$ q * threads $}u];
$$ endfor
$$ for i in blocks_m
$$ for j in blocks_n
  var s{$ i $}_{$ j $} = subgroup_matrix_result<i32, 16, 16>();
$$ endfor
$$ endfor
  for (var step = 0u; step < params.steps; step++) {
$$ for q in loads_x
    tile[to_x{$ q $}] = next_x{$ q $};
$$ endfor
$$ for q in loads_w
    tile[to_w{$ q $}] = next_w{$ q $};
$$ endfor
    workgroupBarrier();
    // What the last step fetches, if it does, may lie past a buffer's end and is not used.
    {$ "if (step + 1u < params.steps) " if branch $}{
      let vector = (lane % STEP + (step + 1u) * STEP) * {$ stride $}u;
      next_from += {$ TILE_N * STEP $}u;
$$ for q in loads_x
      next_x{$ q $} = codes_from(origin{$ q $}, vector);
$$ endfor
$$ for q in loads_w
      next_w{$ q $} = weight[next_from + {$ q * threads $}u];
$$ endfor
    }
$$ for k in range(STEP // 2)
    {
$$ for j in blocks_n
      let w{$ j $} = subgroupMatrixLoad<subgroup_matrix_right<i8, 16, 32>>(
        &tile, (TILE_M + part_channel + {$ 16 * j $}u) * {$ pitch $}u + {$ 2 * k $}u, true, {$ pitch $}u);
$$ endfor
$$ for i in blocks_m
      {
        let c = subgroupMatrixLoad<subgroup_matrix_left<i8, 32, 16>>(
          &tile, (part_row + {$ 16 * i $}u) * {$ pitch $}u + {$ 2 * k $}u, false, {$ pitch $}u);
$$ for j in blocks_n
        s{$ i $}_{$ j $} = subgroupMatrixMultiplyAccumulate(c, w{$ j $}, s{$ i $}_{$ j $});
$$ endfor
      }
$$ endfor
    }
$$ endfor
    workgroupBarrier();
  }
  // Where a matrix's elements lie is the driver's secret: strips of sixteen rows go through memory.
  let quad = (across * TILE_N + part_channel) / 4u + thread % {$ quads $}u;
  let known = min(quad, params.quads_out - 1u);
  let affine = affine_of(known);
  let zeros = params.zero_point_in * bitcast<vec4<i32>>(weight[known]);
  let scratch = part * {$ 16 * strip $}u;
$$ for i in blocks_m
$$ for j in blocks_n
  subgroupMatrixStore(&tile, scratch + {$ 4 * j $}u, s{$ i $}_{$ j $}, false, {$ strip $}u);
$$ endfor
  workgroupBarrier();
  for (var line = thread / {$ quads $}u; line < 16u; line += {$ 32 // quads $}u) {
    let row = first_row + part_row + {$ 16 * i $}u + line;
    let sums = bitcast<vec4<i32>>(tile[scratch + line * {$ strip $}u + thread % {$ quads $}u]) - zeros;
    if (row < params.rows && quad < params.quads_out) {
      store(row, quad, vec4<f32>(sums), affine);
    }
  }
  workgroupBarrier();
$$ endfor
}
