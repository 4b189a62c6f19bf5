// ROWS rows by eight output channels a thread. Neighbouring threads differ in their channels
// (COLUMNS of them, in blocks of eight) and then in their slice of the inputs, whose partial
// sums they add up at the end.
{% include "linear_q4/unpack.wgsl" %}
{% include "linear_q4/scales.wgsl" %}
{% include "linear_q4/inputs.wgsl" %}
{% include "linear_q4/results.wgsl" %}
$$ set slices = THREADS // COLUMNS
$$ set halves = ["0", "1"]

fn accumulate(v: vec4<f32>, c: vec4<f32>, sum: f32) -> f32 {
  return fma(v.w, c.w, fma(v.z, c.z, fma(v.y, c.y, fma(v.x, c.x, sum))));
}

$$ if slices > 1
// Two rows at a time: that is all the memory there is.
var<workgroup> partial: array<array<vec4<f32>, THREADS>, {$ 2 * [ROWS, 2] | min $}>;
$$ endif

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let tile = linear_group(group);
  let column = tile % params.tiles * COLUMNS + lane % COLUMNS;
  let slice = lane / COLUMNS;
  let block = min(column, params.down - 1u);
  let first_row = tile / params.tiles * ROWS;
$$ for i in range(ROWS)
  let row_{$ i $} = min(first_row + {$ i $}u, params.rows - 1u);
  var sums0_{$ i $} = vec4<f32>();
  var sums1_{$ i $} = vec4<f32>();
$$ endfor
  for (var unit = slice; unit < params.units; unit += {$ slices $}u) {
    let first = unit * UNIT;
$$ for u in range(UNIT)
$$ if FULL
    let w_{$ u $} = weight[(first + {$ u $}u) * params.down + block];
$$ else
    let w_{$ u $} = weight[min(first + {$ u $}u, params.quads - 1u) * params.down + block];
$$ endif
$$ endfor
$$ if ALIGNED
    let part = first * 4u / params.group;
    let scale0 = scale_quad(part, block * 2u);
    let scale1 = scale_quad(part, block * 2u + 1u);
$$ endif
$$ if ALIGNED and ROWS == 1
    var part0 = vec4<f32>();
    var part1 = vec4<f32>();
$$ for u in range(UNIT)
    {
      let v = input_quad(row_0, first + {$ u $}u);
$$ for word in "xyzw"
      {
        let low = low_codes(w_{$ u $}.{$ word $});
        let high = high_codes(w_{$ u $}.{$ word $});
$$ set half = "part0" if word in "xy" else "part1"
$$ set at = "xz"["xyzw".index(word) % 2]
$$ set next = "yw"["xyzw".index(word) % 2]
        {$ half $}.{$ at $} = accumulate(v, low, {$ half $}.{$ at $});
        {$ half $}.{$ next $} = accumulate(v, high, {$ half $}.{$ next $});
      }
$$ endfor
    }
$$ endfor
    sums0_0 = fma(part0, scale0, sums0_0);
    sums1_0 = fma(part1, scale1, sums1_0);
$$ else
$$ for u in range(UNIT)
    {
$$ for i in range(ROWS)
      let v_{$ i $} = input_quad(row_{$ i $}, first + {$ u $}u);
$$ endfor
$$ if not ALIGNED
$$ for j in range(4)
      let part_{$ j $} = min((first + {$ u $}u) * 4u + {$ j $}u, params.k - 1u) / params.group;
      let scale0_{$ j $} = scale_quad(part_{$ j $}, block * 2u);
      let scale1_{$ j $} = scale_quad(part_{$ j $}, block * 2u + 1u);
$$ endfor
$$ endif
$$ for word in "xyzw"
      {
$$ set number = "xyzw".index(word)
$$ set half = number // 2
$$ set at = "xz"[number % 2]
$$ set next = "yw"[number % 2]
$$ if ALIGNED
        let low = low_codes(w_{$ u $}.{$ word $}) * scale{$ half $}.{$ at $};
        let high = high_codes(w_{$ u $}.{$ word $}) * scale{$ half $}.{$ next $};
$$ else
        let low = low_codes(w_{$ u $}.{$ word $}) * vec4<f32>(
          scale{$ half $}_0.{$ at $}, scale{$ half $}_1.{$ at $},
          scale{$ half $}_2.{$ at $}, scale{$ half $}_3.{$ at $});
        let high = high_codes(w_{$ u $}.{$ word $}) * vec4<f32>(
          scale{$ half $}_0.{$ next $}, scale{$ half $}_1.{$ next $},
          scale{$ half $}_2.{$ next $}, scale{$ half $}_3.{$ next $});
$$ endif
$$ for i in range(ROWS)
        sums{$ half $}_{$ i $}.{$ at $} = accumulate(v_{$ i $}, low, sums{$ half $}_{$ i $}.{$ at $});
        sums{$ half $}_{$ i $}.{$ next $} = accumulate(v_{$ i $}, high, sums{$ half $}_{$ i $}.{$ next $});
$$ endfor
      }
$$ endfor
    }
$$ endfor
$$ endif
  }
$$ if slices > 1
$$ for first in range(0, ROWS, 2)
$$ set pair = range(first, [first + 2, ROWS] | min)
$$ for i in pair
$$ for half in range(2)
  partial[{$ 2 * (i - first) + half $}][lane] = sums{$ half $}_{$ i $};
$$ endfor
$$ endfor
  workgroupBarrier();
  for (var width = {$ slices // 2 $}u; width > 0u; width /= 2u) {
    if (slice < width) {
$$ for part in range(2 * (pair | length))
      partial[{$ part $}][lane] += partial[{$ part $}][lane + width * COLUMNS];
$$ endfor
    }
    workgroupBarrier();
  }
  if (slice == 0u && column < params.down) {
    for (var part = 0u; part < {$ 2 * (pair | length) $}u; part++) {
      store(first_row + {$ first $}u + part / 2u, column * 2u + part % 2u, partial[part][lane]);
    }
  }
$$ if first + 2 < ROWS
  workgroupBarrier();
$$ endif
$$ endfor
$$ else
  if (column < params.down) {
$$ for i in range(ROWS)
    store(first_row + {$ i $}u, column * 2u, sums0_{$ i $});
    store(first_row + {$ i $}u, column * 2u + 1u, sums1_{$ i $});
$$ endfor
  }
$$ endif
}
