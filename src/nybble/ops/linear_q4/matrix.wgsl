// A TILE_M x TILE_N tile of the product a workgroup on the matrix units, of which each of its
// subgroups (ACROSS by DOWN, of 32 threads) makes a part. Every factor is the sum of two
// bfloat16, so of 16 bits and of float32's range; the product of the two smaller is left out.
// What an infinity takes part in becomes NaN, and is made again in float32.
{% include "linear_q4/lost.wgsl" %}
$$ if KIND != "outer"
{% include "linear_q4/unpack.wgsl" %}
{% include "linear_q4/scales.wgsl" %}
$$ endif
{% include "linear_q4/tile_" ~ KIND ~ ".wgsl" %}
$$ set outer = KIND == "outer"
$$ set threads = 32 * ACROSS * DOWN
$$ set part_m = TILE_M // DOWN
$$ set part_n = TILE_N // ACROSS
$$ set quads = DEPTH // 4
$$ set left_count = TILE_M * quads
$$ set right_count = TILE_N // 4 * (DEPTH if outer else quads)
$$ set left_loads = range((left_count + threads - 1) // threads)
$$ set right_loads = range((right_count + threads - 1) // threads)
{# In pairs of words, four bfloat16: a line and sixteen bytes, which spread lines over banks. #}
$$ set left_pitch = (TILE_M // 4 if outer else quads) + 2
$$ set right_pitch = (TILE_N // 4 if outer else quads) + 2
$$ set left_size = left_pitch * (DEPTH if outer else TILE_M)
$$ set right_size = right_pitch * (DEPTH if outer else TILE_N)
$$ set right_start = 2 * left_size
{# Results are float32, two a pair of words. #}
$$ set strip = part_n // 2 + 2
$$ set scratch_size = 16 * strip * ACROSS * DOWN
$$ set by_column = "true" if outer else "false"
$$ set by_row = "false" if outer else "true"

var<workgroup> tile: array<vec2<u32>, {$ [2 * (left_size + right_size), scratch_size] | max $}>;

// Rounded to bfloat16; what is not finite, or would round to it, is cut off instead.
fn rounded(values: vec4<f32>) -> vec4<u32> {
  let bits = bitcast<vec4<u32>>(values);
  let large = (bits & vec4<u32>(0x7fffffffu)) >= vec4<u32>(0x7f7f8000u);
  return select(bits + vec4<u32>(0x8000u), bits, large) & vec4<u32>(0xffff0000u);
}

fn packed(high: vec4<u32>) -> vec2<u32> {
  return (high.xz >> vec2<u32>(16u)) | high.yw;
}

fn put(at: u32, size: u32, values: vec4<f32>) {
  let high = rounded(values);
  tile[at] = packed(high);
  tile[at + size] = packed(rounded(values - bitcast<vec4<f32>>(high)));
}

fn in_floats(row: u32, quad: u32) -> vec4<f32> {
  var sums = vec4<f32>();
  for (var depth = 0u; depth < params.steps * {$ DEPTH if outer else quads $}u; depth++) {
$$ if outer
    sums += left_quad(row / 4u, depth)[row % 4u] * right_part(quad, depth);
$$ else
    sums += values_of(right_part(quad, depth)) * left_quad(row, depth);
$$ endif
  }
  return sums;
}

@compute @workgroup_size({$ threads $})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32,
        @builtin(subgroup_id) part: u32, @builtin(subgroup_invocation_id) thread: u32) {
  let place = linear_group(group);
  let first_row = place / params.tiles * {$ TILE_M $}u;
  let first_quad = place % params.tiles * {$ TILE_N // 4 $}u;
  let part_row = part / ACROSS * {$ part_m $}u;
  let part_column = part % ACROSS * {$ part_n $}u;
$$ for q in left_loads
  let l_{$ q $} = lane + {$ q * threads $}u;
$$ if outer
  let l_inner_{$ q $} = l_{$ q $} % {$ TILE_M // 4 $}u;
  let l_depth_{$ q $} = l_{$ q $} / {$ TILE_M // 4 $}u;
  let l_to_{$ q $} = l_depth_{$ q $} * {$ left_pitch $}u + l_inner_{$ q $};
$$ else
  let l_depth_{$ q $} = l_{$ q $} % {$ quads $}u;
  let l_inner_{$ q $} = l_{$ q $} / {$ quads $}u;
  let l_to_{$ q $} = l_inner_{$ q $} * {$ left_pitch $}u + l_depth_{$ q $};
$$ endif
  var l_value_{$ q $} = left_quad(
    first_row{$ " / 4u" if outer else "" $} + l_inner_{$ q $}, l_depth_{$ q $});
$$ endfor
$$ for q in right_loads
  let r_{$ q $} = lane + {$ q * threads $}u;
$$ if outer
  let r_inner_{$ q $} = r_{$ q $} % {$ TILE_N // 4 $}u;
  let r_depth_{$ q $} = r_{$ q $} / {$ TILE_N // 4 $}u;
  let r_to_{$ q $} = {$ right_start $}u + r_depth_{$ q $} * {$ right_pitch $}u + r_inner_{$ q $};
$$ else
  let r_depth_{$ q $} = r_{$ q $} % {$ quads $}u;
  let r_inner_{$ q $} = r_{$ q $} / {$ quads $}u;
  let r_to_{$ q $} = {$ right_start $}u + r_inner_{$ q $} * {$ 4 * right_pitch $}u + r_depth_{$ q $};
$$ endif
  var r_value_{$ q $} = right_part(first_quad + r_inner_{$ q $}, r_depth_{$ q $});
$$ endfor
$$ for i in range(part_m // 16)
$$ for j in range(part_n // 16)
  var s{$ i $}_{$ j $} = subgroup_matrix_result<f32, 16, 16>();
$$ endfor
$$ endfor
  for (var step = 0u; step < params.steps; step++) {
$$ for q in left_loads
    {$ "if (l_%d < %du) " % (q, left_count) if left_count % threads else "" $}{
      put(l_to_{$ q $}, {$ left_size $}u, l_value_{$ q $});
    }
$$ endfor
$$ for q in right_loads
    {$ "if (r_%d < %du) " % (q, right_count) if right_count % threads else "" $}{
$$ if outer
      put(r_to_{$ q $}, {$ right_size $}u, r_value_{$ q $});
$$ else
      let parts = transpose(values_of(r_value_{$ q $}));
$$ for e in range(4)
      put(r_to_{$ q $} + {$ e * right_pitch $}u, {$ right_size $}u, parts[{$ e $}]);
$$ endfor
$$ endif
    }
$$ endfor
    workgroupBarrier();
    // What the last step fetches is not used: a branch in this loop takes longer.
    {
$$ set next = "(step + 1u) * %du" % (DEPTH if outer else quads)
$$ for q in left_loads
      l_value_{$ q $} = left_quad(
        first_row{$ " / 4u" if outer else "" $} + l_inner_{$ q $}, {$ next $} + l_depth_{$ q $});
$$ endfor
$$ for q in right_loads
      r_value_{$ q $} = right_part(first_quad + r_inner_{$ q $}, {$ next $} + r_depth_{$ q $});
$$ endfor
    }
$$ for k in range(DEPTH // 16)
    {
$$ for j in range(part_n // 16)
$$ set at = "%du + part_column / 4u + %du" % (k * 16 * right_pitch, 4 * j) if outer else "(part_column + %du) * %du + %du" % (16 * j, right_pitch, 4 * k)
$$ for term in range(2)
      let w{$ j $}_{$ term $} = subgroupMatrixLoad<subgroup_matrix_right<bf16, 16, 16>>(
        &tile, {$ right_start + term * right_size $}u + {$ at $}, {$ by_row $}, {$ right_pitch $}u);
$$ endfor
$$ endfor
$$ for i in range(part_m // 16)
$$ set at = "%du + part_row / 4u + %du" % (k * 16 * left_pitch, 4 * i) if outer else "(part_row + %du) * %du + %du" % (16 * i, left_pitch, 4 * k)
      {
$$ for term in range(2)
        let c_{$ term $} = subgroupMatrixLoad<subgroup_matrix_left<bf16, 16, 16>>(
          &tile, {$ term * left_size $}u + {$ at $}, {$ by_column $}, {$ left_pitch $}u);
$$ endfor
$$ for j in range(part_n // 16)
        s{$ i $}_{$ j $} = subgroupMatrixMultiplyAccumulate(c_1, w{$ j $}_0, s{$ i $}_{$ j $});
        s{$ i $}_{$ j $} = subgroupMatrixMultiplyAccumulate(c_0, w{$ j $}_1, s{$ i $}_{$ j $});
        s{$ i $}_{$ j $} = subgroupMatrixMultiplyAccumulate(c_0, w{$ j $}_0, s{$ i $}_{$ j $});
$$ endfor
      }
$$ endfor
    }
$$ endfor
    workgroupBarrier();
  }
  // Where a matrix's elements lie is the driver's secret: strips of sixteen rows go through memory.
  let scratch = part * {$ 16 * strip $}u;
  let column = thread % {$ part_n // 4 $}u;
  var again = 0u;
$$ for i in range(part_m // 16)
$$ for j in range(part_n // 16)
  subgroupMatrixStore(&tile, scratch + {$ 8 * j $}u, s{$ i $}_{$ j $}, false, {$ strip $}u);
$$ endfor
  workgroupBarrier();
  for (var line = thread / {$ part_n // 4 $}u; line < 16u; line += {$ 128 // part_n $}u) {
    let at = scratch + line * {$ strip $}u + column * 2u;
    let row = first_row + part_row + {$ 16 * i $}u + line;
    let quad = first_quad + part_column / 4u + column;
    let sums = bitcast<vec4<f32>>(vec4<u32>(tile[at], tile[at + 1u]));
    store(row, quad, sums);
    again = again | (u32(any(lost(sums))) << ({$ 16 * i $}u + line));
  }
  workgroupBarrier();
$$ endfor
  for (var line = 0u; again != 0u; line++) {
    let row = first_row + part_row + line;
    let quad = first_quad + part_column / 4u + column;
    if ((again & 1u) != 0u) {
      store(row, quad, in_floats(row, quad));
    }
    again = again >> 1u;
  }
}
