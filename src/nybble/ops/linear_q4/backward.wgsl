// ROWS rows by four columns of the inputs' gradient a thread. Neighbouring threads share columns
// and differ in their slice of the outputs; COLUMNS quads of columns a workgroup.
{% include "linear_q4/unpack.wgsl" %}
{% include "linear_q4/scales.wgsl" %}
{% include "linear_q4/gradients.wgsl" %}
$$ set slices = THREADS // COLUMNS

$$ if slices > 1
var<workgroup> partial: array<vec4<f32>, {$ THREADS $}>;
$$ endif

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let tile = linear_group(group);
  let quad = tile % params.tiles * COLUMNS + lane / {$ slices $}u;
  let slice = lane % {$ slices $}u;
  let column = min(quad, params.quads - 1u);
  let first_row = tile / params.tiles * ROWS;
$$ for i in range(ROWS)
  let row_{$ i $} = min(first_row + {$ i $}u, params.rows - 1u);
  var sums_{$ i $} = vec4<f32>();
$$ endfor
  for (var block = slice; block < params.down; block += {$ slices $}u) {
    let w = weight[column * params.down + block];
$$ for half in range(2)
    {
      let at = block * 2u + {$ half $}u;
$$ if ALIGNED
      let scale = scale_within(column * 4u, at);
$$ else
$$ for j in range(4)
      let scale_{$ j $} = scale_within(column * 4u + {$ j $}u, at);
$$ endfor
$$ endif
$$ for i in range(ROWS)
      let d_{$ i $} = gradient_quad(row_{$ i $}, at);
$$ endfor
$$ for e in "xyzw"
      {
$$ set number = "xyzw".index(e)
        let codes = {$ "high" if number % 2 else "low" $}_codes(w.{$ "xyzw"[2 * half + number // 2] $});
$$ if ALIGNED
        let values = codes * scale.{$ e $};
$$ else
        let values = codes * vec4<f32>(scale_0.{$ e $}, scale_1.{$ e $}, scale_2.{$ e $}, scale_3.{$ e $});
$$ endif
$$ for i in range(ROWS)
        sums_{$ i $} = fma(vec4<f32>(d_{$ i $}.{$ e $}), values, sums_{$ i $});
$$ endfor
      }
$$ endfor
    }
$$ endfor
  }
$$ for i in range(ROWS)
$$ if slices > 1
  partial[lane] = sums_{$ i $};
  workgroupBarrier();
  for (var width = {$ slices // 2 $}u; width > 0u; width /= 2u) {
    if (slice < width) {
      partial[lane] += partial[lane + width];
    }
    workgroupBarrier();
  }
  if (slice == 0u && quad < params.quads) {
    store(first_row + {$ i $}u, quad, partial[lane]);
  }
  workgroupBarrier();
$$ else
  if (quad < params.quads) {
    store(first_row + {$ i $}u, quad, sums_{$ i $});
  }
$$ endif
$$ endfor
}
