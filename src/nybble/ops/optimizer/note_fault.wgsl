var<workgroup> partial: array<i32, THREADS>;

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) lane: u32) {
  var count = 0;
  for (var i = lane; i < params.parts; i += THREADS) {
    count += counts[i];
  }
  partial[lane] = count;
  workgroupBarrier();
  for (var width = THREADS / 2u; width > 0u; width /= 2u) {
    if (lane < width) {
      partial[lane] += partial[lane + width];
    }
    workgroupBarrier();
  }
  if (lane == 0u && partial[0] > 0 && fault[0] < 0) {
    fault[0] = params.slot;
    fault[1] = partial[0];
  }
}
