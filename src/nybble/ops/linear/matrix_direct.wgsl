{% include "linear/finish.wgsl" %}

// Up to four rows of one column a thread: they share the weight's loads.
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let item = linear_group(group) * THREADS + lane;
  let row_tiles = (params.m + ROWS - 1u) / ROWS;
  if (item < row_tiles * params.n * params.matrices) {
    let column = item % params.n;
    let row = item / params.n % row_tiles * ROWS;
    let matrix = item / params.n / row_tiles;
    let steps = params.k / {$ WIDTH $}u;
$$ for i in range(ROWS)
    let x_{$ i $} = (matrix * params.m + min(row + {$ i $}u, params.m - 1u)) * steps;
    var sum_{$ i $} = 0.0;
$$ endfor
    for (var i = 0u; i < steps; i++) {
$$ if WEIGHT_ROWS
      let w = weight[column * steps + i];
$$ else
      let w = weight[(matrix * params.k + i) * params.n + column];
$$ endif
$$ for i in range(ROWS)
      sum_{$ i $} += {$ "dot(x[x_%d + i], w)" % i if WIDTH == 4 else "x[x_%d + i] * w" % i $};
$$ endfor
    }
$$ for i in range(ROWS)
    if (row + {$ i $}u < params.m) {
      out[(matrix * params.m + row + {$ i $}u) * params.n + column] =
        finish(sum_{$ i $}, row + {$ i $}u, column);
    }
$$ endfor
  }
}
