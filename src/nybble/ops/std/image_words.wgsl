// Codes under a filter: the taps' channel words in a row, as if the image were unfolded.
$$ set element = "vec4<u32>" if WIDE else "u32"
{% include "std/image_taps.wgsl" %}

fn element_at(origin: vec3<u32>, k: u32) -> {$ element $} {
  let tap = k / params.depth;
  let y = origin.y + tap / KERNEL_W * DILATION_H;
  let column = origin.z + tap % KERNEL_W * DILATION_W;
  let inside = y < params.h && column < params.w && tap < KERNEL_H * KERNEL_W;
  let at = ((origin.x + y) * params.w + column) * params.depth + k % params.depth;
  return select({$ element $}(zero_codes()), x[select(0u, at, inside)], inside);
}

// Sixteen codes from element k on. Those past the last tap meet zero weights.
fn codes_from(origin: vec3<u32>, k: u32) -> vec4<u32> {
$$ if WIDE
  return element_at(origin, k);
$$ else
  return vec4<u32>(
    element_at(origin, k), element_at(origin, k + 1u),
    element_at(origin, k + 2u), element_at(origin, k + 3u));
$$ endif
}
