// A TILE_M x TILE_N tile of the product a workgroup, ROWS x COLUMNS results a thread, in steps of
// DEPTH. The next step's inputs travel through registers while this one's are multiplied.
$$ if KIND != "outer"
{% include "linear_q4/unpack.wgsl" %}
{% include "linear_q4/scales.wgsl" %}
$$ endif
{% include "linear_q4/tile_" ~ KIND ~ ".wgsl" %}
$$ set across = TILE_N // COLUMNS
$$ set down = TILE_M // ROWS
$$ set threads = across * down
$$ set quads = DEPTH // 4
$$ set left_count = TILE_M * quads
$$ set right_count = TILE_N // 4 * (DEPTH if KIND == "outer" else quads)
$$ set left_loads = range((left_count + threads - 1) // threads)
$$ set right_loads = range((right_count + threads - 1) // threads)
$$ set outer = KIND == "outer"
{# Neighbouring threads store neighbours along the depth: padding spreads them over banks. #}
$$ set padding = 8 // quads if (TILE_M + TILE_N + 16 // quads) * DEPTH * 4 <= 16384 else 0
$$ set left_pitch = TILE_M // 4 if outer else TILE_M + padding
$$ set right_pitch = TILE_N // 4 + (padding if KIND == "backward" else 0)

$$ if outer
var<workgroup> left: array<array<vec4<f32>, {$ left_pitch $}>, {$ DEPTH $}>;
$$ else
var<workgroup> left: array<array<vec4<f32>, {$ left_pitch $}>, {$ quads $}>;
$$ endif
var<workgroup> right: array<array<vec4<f32>, {$ right_pitch $}>, {$ DEPTH $}>;

@compute @workgroup_size({$ threads $})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let tile = linear_group(group);
  let first_row = tile / params.tiles * {$ TILE_M $}u;
  let first_quad = tile % params.tiles * {$ TILE_N // 4 $}u;
  let tx = lane % {$ across $}u;
  let ty = lane / {$ across $}u;
$$ for q in left_loads
  let l_{$ q $} = lane + {$ q * threads $}u;
$$ if outer
  let l_inner_{$ q $} = l_{$ q $} % {$ TILE_M // 4 $}u;
  let l_depth_{$ q $} = l_{$ q $} / {$ TILE_M // 4 $}u;
$$ else
  let l_depth_{$ q $} = l_{$ q $} % {$ quads $}u;
  let l_inner_{$ q $} = l_{$ q $} / {$ quads $}u;
$$ endif
  var l_value_{$ q $} = vec4<f32>();
$$ endfor
$$ for q in right_loads
  let r_{$ q $} = lane + {$ q * threads $}u;
$$ if KIND == "backward"
  let r_depth_{$ q $} = r_{$ q $} % {$ quads $}u;
  let r_inner_{$ q $} = r_{$ q $} / {$ quads $}u;
$$ else
  let r_inner_{$ q $} = r_{$ q $} % {$ TILE_N // 4 $}u;
  let r_depth_{$ q $} = r_{$ q $} / {$ TILE_N // 4 $}u;
$$ endif
  var r_value_{$ q $}: {$ "vec4<f32>" if outer else "Part" $};
$$ endfor
$$ for i in range(ROWS)
$$ for j in range(COLUMNS // 4)
  var sums_{$ i $}_{$ j $} = vec4<f32>();
$$ endfor
$$ endfor
  // The first round only fetches.
  for (var step = 0u; step <= params.steps; step++) {
    if (step > 0u) {
$$ for q in left_loads
      if (l_{$ q $} < {$ left_count $}u) {
        left[l_depth_{$ q $}][l_inner_{$ q $}] = l_value_{$ q $};
      }
$$ endfor
$$ for q in right_loads
      if (r_{$ q $} < {$ right_count $}u) {
$$ if outer
        right[r_depth_{$ q $}][r_inner_{$ q $}] = r_value_{$ q $};
$$ else
        let parts = values_of(r_value_{$ q $});
$$ for e in range(4)
        right[r_depth_{$ q $} + {$ e * quads $}u][r_inner_{$ q $}] = parts[{$ e $}];
$$ endfor
$$ endif
      }
$$ endfor
    }
    workgroupBarrier();
    if (step < params.steps) {
$$ set next = "step * %du" % (DEPTH if outer else quads)
$$ for q in left_loads
      l_value_{$ q $} = left_quad(
        first_row{$ " / 4u" if outer else "" $} + l_inner_{$ q $}, {$ next $} + l_depth_{$ q $});
$$ endfor
$$ for q in right_loads
      r_value_{$ q $} = right_part(first_quad + r_inner_{$ q $}, {$ next $} + r_depth_{$ q $});
$$ endfor
    }
    if (step > 0u) {
$$ for literal in range(quads) if UNROLLED or not literal
$$ if UNROLLED
      {
$$ set q = "%du" % literal
$$ else
      for (var q = 0u; q < {$ quads $}u; q++) {
$$ set q = "q"
$$ endif
$$ if not outer
$$ for i in range(ROWS)
        let a_{$ i $} = left[{$ q $}][ty + {$ i * down $}u];
$$ endfor
$$ endif
$$ for e in range(4)
        {
$$ set depth = "%du" % (literal + e * quads) if UNROLLED else "q + %du" % (e * quads)
$$ if outer
$$ for i in range(ROWS // 4)
          let a_{$ i $} = left[{$ depth $}][ty + {$ i * down $}u];
$$ endfor
$$ endif
$$ for j in range(COLUMNS // 4)
          let b_{$ j $} = right[{$ depth $}][tx + {$ j * across $}u];
$$ endfor
$$ for i in range(ROWS)
$$ set factor = "a_%d.%s" % ((i // 4, "xyzw"[i % 4]) if outer else (i, "xyzw"[e]))
$$ for j in range(COLUMNS // 4)
          sums_{$ i $}_{$ j $} = fma(vec4<f32>({$ factor $}), b_{$ j $}, sums_{$ i $}_{$ j $});
$$ endfor
$$ endfor
        }
$$ endfor
      }
$$ endfor
    }
    workgroupBarrier();
  }
$$ for i in range(ROWS)
$$ set row = "(ty + %du) * 4u + %du" % (i // 4 * down, i % 4) if outer else "ty + %du" % (i * down)
$$ for j in range(COLUMNS // 4)
  store(first_row + {$ row $}, first_quad + tx + {$ j * across $}u, sums_{$ i $}_{$ j $});
$$ endfor
$$ endfor
}
