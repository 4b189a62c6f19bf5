// One row by packed integer dot products, its integers shared through the subgroup's registers as
// in product_shuffle, for slices of several units: four inputs' weights of the next unit are asked
// for as soon as this one's are used, so that memory does not wait for arithmetic.
{% include "linear_q4/row_slices.wgsl" %}
$$ set slices = THREADS // 8
$$ set quads = range(8)

// By how much four inputs exceed 2^16 over a power of two, all in all; those of zeros need not.
// In float32, which takes fewer instructions than integers do.
fn float_excess(v: vec4<f32>, inverse: f32) -> f32 {
  let m = abs(v);
  // 1 for every number that is normal: 1.7e38 times 2^-126 is 2.
  let there = min(m * 1.7e38, vec4<f32>(1.0));
  return ((m.x + m.y) + (m.z + m.w)) * inverse
    - 65536.0 * ((there.x + there.y) + (there.z + there.w));
}

// Whether integers serve a unit: those beside the largest keep 16 bits on average, and so does a
// tiny one alone. From 2^125 on a sum of four may overflow.
fn is_fine(size: u32, inverse: f32, excess: f32) -> bool {
  return (size < 0x7e000000u) & (excess >= max(fma(bitcast<f32>(size), inverse, -65536.0), 0.0));
}

{% include "linear_q4/row_begins.wgsl" %}
$$ for u in quads
  var w_{$ u $} = weight[(min(first, params.units - 1u) * 8u + {$ u $}u) * params.down + block];
$$ endfor
  // A bit for each unit that is left out: to decide again might be to decide otherwise, as sums
  // of floats depend on their order.
  var left_out = 0u;
  // As many rounds for all, since shuffles need every thread.
  for (var i = 0u; i < rounds; i++) {
    let there = min(unit, params.units - 1u);
    let scale0 = scale_quad(there / GROUP_UNITS, block * 2u);
    let scale1 = scale_quad(there / GROUP_UNITS, block * 2u + 1u);
    let v = inputs;
    inputs = raw_quad(0u, min((unit + 1u) * 8u + own, params.quads - 1u));
    var size = largest(v);
$$ for step in (1, 2, 4)
    size = max(size, subgroupShuffleXor(size, {$ step $}u));
$$ endfor
    let exponent = exponent_for(size);
    let inverse = inverse_of(exponent);
    let n = integers(v, inverse);
    let bytes = three_bytes(n);
    var eights = total(n) * 8;
$$ for j in range(8)
    var high_{$ j $} = 0;
    var middle_{$ j $} = 0;
    var low_{$ j $} = 0;
$$ endfor
    let more = i + 1u < rounds;
    let next = min(unit + 1u, params.units - 1u);
$$ for u in quads
    {
      let high = subgroupShuffle(bytes.x, base + {$ u $}u);
      let middle = subgroupShuffle(bytes.y, base + {$ u $}u);
      let low = subgroupShuffle(bytes.z, base + {$ u $}u);
$$ for j in range(8)
      {
        // Of an odd output sixteen times the code less 8; of an even one that of the odd output
        // after it and the code, which takes one instruction less.
$$ set word = "w_%d.%s" % (u, "xyzw"[j // 2])
        let codes = {$ "(%s & 0xf0f0f0f0u)" % word if j % 2 else word $} ^ 0x80808080u;
        high_{$ j $} += dot4(codes, high);
        middle_{$ j $} += dot4(codes, middle);
        low_{$ j $} += dot4(codes, low);
      }
$$ endfor
    }
    if (more) {
      w_{$ u $} = weight[(next * 8u + {$ u $}u) * params.down + block];
    }
$$ endfor
    // Here rather than before the products, which need not wait for it.
    var excess = float_excess(v, inverse);
    let here = unit < params.units;
$$ for step in (1, 2, 4)
    excess += subgroupShuffleXor(excess, {$ step $}u);
    eights += subgroupShuffleXor(eights, {$ step $}u);
$$ endfor
    let served = is_fine(size, inverse, excess);
    let fine = here & served;
    left_out |= select(0u, 1u << i, here & !fine);
    let unit_scale = select(0.0, bitcast<f32>(exponent << 23u), fine);
$$ for j in range(1, 8, 2)
    let sum_{$ j $} = high_{$ j $} * 1024 + middle_{$ j $} * 8 + (low_{$ j $} >> 4u);
$$ endfor
    // What is too large for 32 bits on the way wraps, and comes back.
$$ for j in range(0, 8, 2)
    let sum_{$ j $} = high_{$ j $} * 16384 + middle_{$ j $} * 128 + low_{$ j $}
      - sum_{$ j + 1 $} * 16 - eights;
$$ endfor
    sums0 = fma(vec4<f32>(vec4<i32>(sum_0, sum_1, sum_2, sum_3)) * unit_scale, scale0, sums0);
    sums1 = fma(vec4<f32>(vec4<i32>(sum_4, sum_5, sum_6, sum_7)) * unit_scale, scale1, sums1);
    unit++;
  }
  rough = left_out != 0u;
{% set is_left_out = "((left_out >> (unit - first)) & 1u) != 0u" %}
{% include "linear_q4/row_ends.wgsl" %}
}
