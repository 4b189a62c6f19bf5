// A TILE_M x TILE_N tile of the product of fixed-point numbers and 4-bit weights on the matrix
// units, in int8, or one of the `splits` parts of its depth. In a group of 32 inputs products are
// exact: the higher bytes' sum times 256 begins the lower bytes' sum. Parts of 32 x 64 a subgroup.
$$ set parts = TILE_M // 32 * (TILE_N // 64)
$$ set threads = 32 * parts
{# A step has two groups: four vectors of sixteen bytes a row and limb, one more against conflicts #}
{# of rows over banks, four more against those of limbs. #}
$$ set pitch = 5
$$ set limb = TILE_M * pitch + 4
$$ set loads_x = range(TILE_M * 8 // threads)
$$ set loads_w = range(TILE_N * 4 // threads)
$$ set loads_cx = range(2 * TILE_M // threads)
$$ set loads_cw = range(2 * TILE_N // threads)
$$ set strip = 17

var<workgroup> tile: array<vec4<u32>, {$ [2 * limb, 16 * strip * parts] | max $}>;
var<workgroup> codes: array<u32, {$ TILE_N * pitch * 4 $}>;
var<workgroup> row_scales: array<f32, {$ 2 * TILE_M $}>;
var<workgroup> column_scales: array<f32, {$ 2 * TILE_N $}>;

// The values code - 8 of a word's four even rows, as int8: no sum of two bytes carries.
fn values_of(word: u32) -> u32 {
  return ((word & 0x0f0f0f0fu) + 0x78787878u) ^ 0x80808080u;
}

@compute @workgroup_size({$ threads $})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32,
        @builtin(subgroup_id) part: u32, @builtin(subgroup_invocation_id) thread: u32) {
  let place = linear_group(group);
  let split = place % params.splits;
  let first_row = place / params.splits / params.tiles * TILE_M;
  let first_column = place / params.splits % params.tiles * TILE_N;
  let part_row = part / {$ TILE_N // 64 $}u * 32u;
  let part_column = part % {$ TILE_N // 64 $}u * 64u;
  let first = split * params.steps;
$$ for q in loads_x
  let e_x{$ q $} = lane + {$ q * threads $}u;
  let from_x{$ q $} = min(first_row + e_x{$ q $} / 8u, params.rows - 1u) * params.blocks * 4u
    + first * 8u + e_x{$ q $} % 8u;
  let to_x{$ q $} = e_x{$ q $} / 2u % 2u * {$ limb $}u + e_x{$ q $} / 8u * {$ pitch $}u
    + e_x{$ q $} / 4u % 2u * 2u + e_x{$ q $} % 2u;
  var next_x{$ q $} = x[from_x{$ q $}];
$$ endfor
  let stride_w = 32u * params.down;
$$ for q in loads_w
  let e_w{$ q $} = lane + {$ q * threads $}u;
  let from_w{$ q $} = first * stride_w + e_w{$ q $} % 16u * params.down * 2u
    + min(first_column / 4u + e_w{$ q $} / 16u, params.down * 2u - 1u);
  let to_w{$ q $} = e_w{$ q $} / 16u * {$ 16 * pitch $}u + e_w{$ q $} % 16u;
  var next_w{$ q $} = weight[from_w{$ q $}];
$$ endfor
$$ for q in loads_cx
  let e_cx{$ q $} = lane + {$ q * threads $}u;
  let from_cx{$ q $} = (first * 2u + e_cx{$ q $} / TILE_M) * params.rows
    + min(first_row + e_cx{$ q $} % TILE_M, params.rows - 1u);
  var next_cx{$ q $} = x_scales[from_cx{$ q $}];
$$ endfor
$$ for q in loads_cw
  let e_cw{$ q $} = lane + {$ q * threads $}u;
  let block_cw{$ q $} = first * 2u + e_cw{$ q $} / TILE_N;
  let from_cw{$ q $} = min(first_column + e_cw{$ q $} % TILE_N, params.n - 1u);
$$ if GROUP_BLOCKS
  var next_cw{$ q $} = scales[block_cw{$ q $} / GROUP_BLOCKS * params.scale_row + from_cw{$ q $}];
$$ else
  var next_cw{$ q $} = scales[from_cw{$ q $}];
$$ endif
$$ endfor
$$ for i in range(2)
$$ for j in range(4)
  var s{$ i $}_{$ j $} = subgroup_matrix_result<f32, 16, 16>();
$$ endfor
$$ endfor
  // Its bounds are those of all parts: a loop that may differ between subgroups takes longer.
  for (var turn = 0u; turn < params.steps; turn++) {
$$ for q in loads_x
    tile[to_x{$ q $}] = next_x{$ q $};
$$ endfor
$$ for q in loads_w
$$ for j in range(4)
    codes[to_w{$ q $} + {$ 4 * j * pitch $}u] = values_of(next_w{$ q $}.{$ "xxyy"[j] $}{$ " >> 4u" if j % 2 else "" $});
$$ endfor
$$ endfor
$$ for q in loads_cx
    row_scales[e_cx{$ q $}] = next_cx{$ q $};
$$ endfor
$$ for q in loads_cw
    column_scales[e_cw{$ q $}] = next_cw{$ q $};
$$ endfor
    workgroupBarrier();
    if (turn + 1u < params.steps) {
$$ for q in loads_x
      next_x{$ q $} = x[from_x{$ q $} + (turn + 1u) * 8u];
$$ endfor
$$ for q in loads_w
      next_w{$ q $} = weight[from_w{$ q $} + (turn + 1u) * stride_w];
$$ endfor
$$ for q in loads_cx
      next_cx{$ q $} = x_scales[from_cx{$ q $} + (turn + 1u) * 2u * params.rows];
$$ endfor
$$ if GROUP_BLOCKS
$$ for q in loads_cw
      next_cw{$ q $} = scales[
        (block_cw{$ q $} + (turn + 1u) * 2u) / GROUP_BLOCKS * params.scale_row + from_cw{$ q $}];
$$ endfor
$$ endif
    }
$$ for g in range(2)
    {
$$ for j in range(4)
      let w{$ j $} = subgroupMatrixLoad<subgroup_matrix_right<i8, 16, 32>>(
        &codes, (part_column + {$ 16 * j $}u) * {$ 4 * pitch $}u + {$ 8 * g $}u, true, {$ 4 * pitch $}u);
      let cw{$ j $} = subgroupMatrixLoad<subgroup_matrix_result<f32, 16, 16>>(
        &column_scales, {$ g $}u * TILE_N + part_column + {$ 16 * j $}u, false, 0u);
$$ endfor
$$ for i in range(2)
      {
$$ for l in range(2)
        let c{$ l $} = subgroupMatrixLoad<subgroup_matrix_left<i8, 32, 16>>(
          &tile, {$ l * limb $}u + (part_row + {$ 16 * i $}u) * {$ pitch $}u + {$ 2 * g $}u, false, {$ pitch $}u);
$$ endfor
        let cx = subgroupMatrixLoad<subgroup_matrix_result<f32, 16, 16>>(
          &row_scales, {$ g $}u * TILE_M + part_row + {$ 16 * i $}u, true, 0u);
$$ for j in range(4)
        let high{$ j $} = subgroupMatrixMultiplyAccumulate(
          c0, w{$ j $}, subgroup_matrix_result<i32, 16, 16>());
        let whole{$ j $} = subgroupMatrixMultiplyAccumulate(c1, w{$ j $}, high{$ j $} * 256);
        s{$ i $}_{$ j $} = s{$ i $}_{$ j $}
          + subgroup_matrix_result<f32, 16, 16>(whole{$ j $}) * cx * cw{$ j $};
$$ endfor
      }
$$ endfor
    }
$$ endfor
    workgroupBarrier();
  }
  // Where a matrix's elements lie is the driver's secret: strips of sixteen rows go through memory.
  let scratch = part * {$ 16 * strip $}u;
  let quad = (first_column + part_column) / 4u + thread % 16u;
$$ for i in range(2)
$$ for j in range(4)
  subgroupMatrixStore(&tile, scratch + {$ 4 * j $}u, s{$ i $}_{$ j $}, false, {$ strip $}u);
$$ endfor
  workgroupBarrier();
  for (var line = thread / 16u; line < 16u; line += 2u) {
    let row = first_row + part_row + {$ 16 * i $}u + line;
    if (row < params.rows && quad < params.n / 4u) {
      out[(split * params.rows + row) * (params.n / 4u) + quad] =
        bitcast<vec4<f32>>(tile[scratch + line * {$ strip $}u + thread % 16u]);
    }
  }
  workgroupBarrier();
$$ endfor
}
