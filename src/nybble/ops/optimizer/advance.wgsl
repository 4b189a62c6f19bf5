@compute @workgroup_size(1)
fn main() {
  if (fault[0] < 0) {
    applied[0] += 1;
  }
}
