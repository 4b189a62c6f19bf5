// Eight rows by four columns of the weight's gradient a thread, for processors whose threads
// share no quick memory.
{% include "linear_q4/tile_outer.wgsl" %}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let item = linear_group(group) * THREADS + lane;
  let across = (params.k + 3u) / 4u;
  let quad = item % across;
  let first = item / across * 2u;
  if (first * 4u < params.n) {
$$ for i in range(8)
    var sums_{$ i $} = vec4<f32>();
$$ endfor
    for (var row = 0u; row < params.rows; row++) {
      let a0 = left_quad(first, row);
      let a1 = left_quad(first + 1u, row);
      let b = right_part(quad, row);
$$ for i in range(8)
      sums_{$ i $} = fma(vec4<f32>(a{$ i // 4 $}.{$ "xyzw"[i % 4] $}), b, sums_{$ i $});
$$ endfor
    }
$$ for i in range(8)
    store(first * 4u + {$ i $}u, quad, sums_{$ i $});
$$ endfor
  }
}
