// Of the kernels whose slices are eight threads in a row.
// Whether the eight threads of a slice are eight in a row of one subgroup, as WGSL leaves open.
fn are_neighbours(lane: u32, place: u32, size: u32) -> bool {
  let next = subgroupShuffleXor(lane, 1u);
  let second = subgroupShuffleXor(lane, 2u);
  let fourth = subgroupShuffleXor(lane, 4u);
  return size >= 8u && place % 8u == lane % 8u
    && next == (lane ^ 1u) && second == (lane ^ 2u) && fourth == (lane ^ 4u);
}
