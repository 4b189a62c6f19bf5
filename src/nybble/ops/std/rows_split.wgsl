// Few rows of codes times a matrix: SLICES neighbouring threads share the products of four output
// channels, a workgroup takes QUADS such channel groups and ROWS rows.
{% include "std/dot4.wgsl" %}
{% include "std/row_results.wgsl" %}
{% include "std/row_words.wgsl" %}

var<workgroup> partial: array<array<vec4<i32>, SLICES * QUADS>, ROWS>;

fn dot16(a: vec4<u32>, b: vec4<u32>) -> i32 {
  return dot4(a.x, b.x) + dot4(a.y, b.y) + dot4(a.z, b.z) + dot4(a.w, b.w);
}

@compute @workgroup_size({$ SLICES * QUADS $})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let slice = lane % SLICES;
  let tile = linear_group(group);
  let first_quad = tile % params.blocks * QUADS;
  let first_row = tile / params.blocks * ROWS;
  let quad = min(first_quad + lane / SLICES, params.quads_out - 1u);
  let at = params.weights_start + quad * 4u * params.vectors;
$$ for i in range(ROWS)
  let x{$ i $} = origin_of(min(first_row + {$ i $}u, params.rows - 1u));
  var sums{$ i $} = vec4<i32>();
$$ endfor
  for (var k = slice; k < params.vectors; k += SLICES) {
    let w0 = weight[at + k];
    let w1 = weight[at + params.vectors + k];
    let w2 = weight[at + 2u * params.vectors + k];
    let w3 = weight[at + 3u * params.vectors + k];
$$ for i in range(ROWS)
    {
      let codes = codes_from(x{$ i $}, k * {$ 1 if WIDE else 4 $}u);
      sums{$ i $} += vec4<i32>(
        dot16(codes, w0), dot16(codes, w1), dot16(codes, w2), dot16(codes, w3));
    }
$$ endfor
  }
$$ for i in range(ROWS)
  partial[{$ i $}][lane] = sums{$ i $};
$$ endfor
  workgroupBarrier();
  for (var half = SLICES / 2u; half > 0u; half /= 2u) {
    if (slice < half) {
$$ for i in range(ROWS)
      partial[{$ i $}][lane] += partial[{$ i $}][lane + half];
$$ endfor
    }
    workgroupBarrier();
  }
  if (lane < QUADS * ROWS) {
    let row = first_row + lane / QUADS;
    let result = first_quad + lane % QUADS;
    if (row < params.rows && result < params.quads_out) {
      let zeros = params.zero_point_in * bitcast<vec4<i32>>(weight[result]);
      let sums = partial[lane / QUADS][lane % QUADS * SLICES];
      store(row, result, vec4<f32>(sums - zeros), affine_of(result));
    }
  }
}
