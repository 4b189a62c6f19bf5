// The dot product of two words of four int8 lanes.
fn dot4(a: u32, b: u32) -> i32 {
$$ if packed_dot is defined and not packed_dot
  let products = unpack4xI8(a) * unpack4xI8(b);
  return products.x + products.y + products.z + products.w;
$$ else
  return dot4I8Packed(a, b);
$$ endif
}

// The dot products of one word with four others.
fn dots4(a: u32, b: vec4<u32>) -> vec4<i32> {
  return vec4<i32>(dot4(a, b.x), dot4(a, b.y), dot4(a, b.z), dot4(a, b.w));
}
