// One block, four columns by eight rows, a thread. ACROSS neighbouring threads read one row;
// those that follow have the next rows, so that blocks are neighbours in the output.
{% include "linear_q4/quotient.wgsl" %}
{% include "linear_q4/scales.wgsl" %}

// Four columns of a row.
fn latents_at(row: u32, quad: u32) -> vec4<f32> {
  let at = min(row, params.n - 1u);
$$ if WIDE
  return latent[at * (params.k / 4u) + quad];
$$ else
  let start = at * params.k;
  let first = quad * 4u;
  let last = params.k - 1u;
  return vec4<f32>(
    latent[start + min(first, last)], latent[start + min(first + 1u, last)],
    latent[start + min(first + 2u, last)], latent[start + min(first + 3u, last)]);
$$ endif
}

// One code a byte. 8 + 2^23 in front: the code stands in the low bits of the sum.
fn packed(rounded: vec4<f32>) -> u32 {
  let codes = bitcast<vec4<u32>>(rounded + vec4<f32>(8388616.0)) & vec4<u32>(15u);
  return codes.x | (codes.y << 8u) | (codes.z << 16u) | (codes.w << 24u);
}

$$ if not ALIGNED
fn scale_at(row: u32, column: u32) -> f32 {
  let at = min(column, params.k - 1u) / params.group * params.scale_row{$ " * 4u" if WIDE else "" $} + min(row, params.n - 1u);
$$ if WIDE
  return scales[at / 4u][at % 4u];
$$ else
  return scales[at];
$$ endif
}

$$ endif
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let tile = linear_group(group);
  let quad = tile % params.tiles * ACROSS + lane % ACROSS;
  let block = tile / params.tiles * {$ THREADS // ACROSS $}u + lane / ACROSS;
  if (quad < params.quads && block < params.down) {
    var words = vec4<u32>();
$$ if ALIGNED
    let part = quad * 4u / params.group;
    let scale0 = scale_quad(part, block * 2u);
    let scale1 = scale_quad(part, block * 2u + 1u);
    var doubtful = 0u;
$$ for i in range(8)
    let v_{$ i $} = latents_at(block * 8u + {$ i $}u, quad);
$$ endfor
$$ for i in range(8)
$$ set scale = "scale%d.%s" % (i // 4, "xyzw"[i % 4])
    {
      let inverse = 1.0 / {$ scale $};
      words.{$ "xyzw"[i // 2] $} |= packed(quick_quotients(v_{$ i $}, inverse, -8.0, 7.0)) << {$ i % 2 * 4 $}u;
      doubtful |= select(0u, {$ 2 ** i $}u, !usual({$ scale $}) || unsure(v_{$ i $}, inverse, -8.0, 7.0));
    }
$$ endfor
$$ else
    var doubtful = 0xffu;
$$ endif
    while (doubtful != 0u) {
      let i = firstTrailingBit(doubtful);
      let row = block * 8u + i;
$$ if ALIGNED
      let scale = vec4<f32>(select(scale0[i % 4u], scale1[i % 4u], i >= 4u));
$$ else
      let scale = vec4<f32>(
        scale_at(row, quad * 4u), scale_at(row, quad * 4u + 1u),
        scale_at(row, quad * 4u + 2u), scale_at(row, quad * 4u + 3u));
$$ endif
      let codes = packed(sure_quotients(latents_at(row, quad), scale, -8.0, 7.0));
      let shift = 4u * (i % 2u);
      words[i / 2u] = (words[i / 2u] & ~(0x0f0f0f0fu << shift)) | (codes << shift);
      doubtful &= doubtful - 1u;
    }
    // Beyond the rows, and beyond the bytes of a row, lies code 8; the nibble that fills the last
    // byte of an odd row is 0.
$$ for i in range(8)
    if (block * 8u + {$ i $}u >= params.n) {
      words.{$ "xyzw"[i // 2] $} = (words.{$ "xyzw"[i // 2] $} & {$ "0xf0f0f0f0u" if i % 2 == 0 else "0x0f0f0f0fu" $}) | {$ "0x08080808u" if i % 2 == 0 else "0x80808080u" $};
    }
$$ endfor
$$ if not WIDE
    for (var i = 0u; i < 4u; i++) {
      let column = quad * 4u + i;
      if (column >= params.k) {
        let filled = block * 8u + vec4<u32>(0u, 2u, 4u, 6u);
        let even = select(vec4<u32>(8u), vec4<u32>(), (filled < vec4<u32>(params.n)) & vec4<bool>(column < params.kept));
        let odd = select(vec4<u32>(8u), vec4<u32>(), (filled + 1u < vec4<u32>(params.n)) & vec4<bool>(column < params.kept));
        let shift = vec4<u32>(8u * i);
        words = (words & ~(vec4<u32>(0xffu) << shift)) | ((even | (odd << vec4<u32>(4u))) << shift);
      }
    }
$$ endif
    out[quad * params.down + block] = words;
  }
}
