{% include "linear/finish.wgsl" %}

const TILE = 64u;
const DEPTH = 16u;
// One column more than a tile: threads that store a column then meet no bank twice.
const PITCH = 65u;
var<workgroup> left: array<f32, 1040>;
var<workgroup> right: array<f32, 1040>;

// A 64 x 64 tile a workgroup, 4 x 4 results a thread, 16 apart so that stores are contiguous.
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let tile = linear_group(group);
  let columns = (params.n + TILE - 1u) / TILE;
  let rows = (params.m + TILE - 1u) / TILE;
  let first_column = tile % columns * TILE;
  let first_row = tile / columns % rows * TILE;
  // A surplus workgroup of a folded grid repeats the last matrix: no branch around barriers.
  let matrix = min(tile / columns / rows, params.matrices - 1u);
  let across = lane % 16u;
  let down = lane / 16u;
$$ for i in range(4)
  var sums_{$ i $} = vec4<f32>();
$$ endfor
  for (var first = 0u; first < params.k; first += DEPTH) {
    for (var i = 0u; i < 4u; i++) {
      let along = first + across;
      let row = first_row + down + i * 16u;
      let in_left = along < params.k && row < params.m;
      left[across * PITCH + down + i * 16u] =
        select(0.0, x[select(0u, (matrix * params.m + row) * params.k + along, in_left)], in_left);
$$ if WEIGHT_ROWS
      let column = first_column + down + i * 16u;
      let in_right = along < params.k && column < params.n;
      right[across * PITCH + down + i * 16u] =
        select(0.0, weight[select(0u, column * params.k + along, in_right)], in_right);
$$ else
      let depth = lane / TILE + i * 4u;
      let column = first_column + lane % TILE;
      let in_right = first + depth < params.k && column < params.n;
      let at = (matrix * params.k + first + depth) * params.n + column;
      right[depth * PITCH + lane % TILE] = select(0.0, weight[select(0u, at, in_right)], in_right);
$$ endif
    }
    workgroupBarrier();
    for (var depth = 0u; depth < DEPTH; depth++) {
      let at = depth * PITCH;
      let w = vec4<f32>(
        right[at + across], right[at + across + 16u],
        right[at + across + 32u], right[at + across + 48u]);
$$ for i in range(4)
      sums_{$ i $} += left[at + down + {$ i * 16 $}u] * w;
$$ endfor
    }
    workgroupBarrier();
  }
$$ for i in range(4)
  {
    let row = first_row + down + {$ i * 16 $}u;
    for (var j = 0u; j < 4u; j++) {
      let column = first_column + across + j * 16u;
      if (row < params.m && column < params.n) {
        out[(matrix * params.m + row) * params.n + column] = finish(sums_{$ i $}[j], row, column);
      }
    }
  }
$$ endfor
}
