// The first line of the image a row of results reads, and its first tap's position in it;
// positions before the image wrap to large numbers.
fn origin_of(row: u32) -> vec3<u32> {
  let column = row % params.w_out;
  let line = row / params.w_out;
  return vec3<u32>(
    line / params.h_out * params.h,
    line % params.h_out * STRIDE_H - PADDING_H,
    column * STRIDE_W - PADDING_W);
}

// Four codes that stand for zero, which is what padding holds.
fn zero_codes() -> u32 {
  return u32(params.zero_point_in & 0xff) * 0x01010101u;
}
