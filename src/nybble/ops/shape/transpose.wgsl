const TILE = 32u;
// One column more than a tile: a column's elements then lie in different banks.
const PITCH = 33u;
var<workgroup> tile: array<{$ SCALAR $}, 1056>;

// Transposes each matrix of a batch in tiles, so that reads and writes are both contiguous.
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let index = linear_group(group);
  let tiles_across = (params.columns + TILE - 1u) / TILE;
  let tiles_down = (params.rows + TILE - 1u) / TILE;
  let first_column = index % tiles_across * TILE;
  let first_row = index / tiles_across % tiles_down * TILE;
  // A surplus workgroup of a folded grid repeats the last matrix: no branch around barriers.
  let matrix = min(index / tiles_across / tiles_down, params.matrices - 1u);
  let start = matrix * params.rows * params.columns;
  let across = lane % TILE;
  let down = lane / TILE;
  for (var i = down; i < TILE; i += 8u) {
    let row = first_row + i;
    let column = first_column + across;
    if (row < params.rows && column < params.columns) {
      tile[i * PITCH + across] = x[start + row * params.columns + column];
    }
  }
  workgroupBarrier();
  for (var i = down; i < TILE; i += 8u) {
    let row = first_row + across;
    let column = first_column + i;
    if (row < params.rows && column < params.columns) {
      out[start + column * params.rows + row] = tile[across * PITCH + i];
    }
  }
}
