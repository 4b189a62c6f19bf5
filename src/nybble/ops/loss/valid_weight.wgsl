var<workgroup> partial: array<u32, THREADS>;

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) lane: u32) {
  var count = 0u;
  for (var row = lane; row < params.rows; row += THREADS) {
    count += select(0u, 1u, labels[row] >= 0);
  }
  partial[lane] = count;
  workgroupBarrier();
  for (var width = THREADS / 2u; width > 0u; width /= 2u) {
    if (lane < width) {
      partial[lane] += partial[lane + width];
    }
    workgroupBarrier();
  }
  if (lane == 0u) {
    out[0] = select(0.0, 1.0 / f32(max(partial[0], 1u)), partial[0] > 0u);
  }
}
