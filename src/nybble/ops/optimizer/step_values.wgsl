@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) lane: u32) {
  let row = clamp(applied[0] - base[0], 0, i32(params.rows) - 1);
  if (lane < params.columns) {
    out[lane] = table[u32(row) * params.columns + lane];
  }
}
