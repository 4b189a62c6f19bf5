// One row by packed integer dot products, its inputs shared through the subgroup's registers: no
// barrier holds the weights up. Eight neighbouring threads have a slice of the units, 32 inputs
// each, of which every one makes four inputs ready; each sums eight outputs of its own.
{% include "linear_q4/row_slices.wgsl" %}
$$ set slices = THREADS // 8
$$ set quads = range(8)

// The same as the main loop decides; not where inputs are not finite.
fn is_fine(size: u32, inverse: f32, excess: i32) -> bool {
  return size < 0x7f800000u && excess >= excess_needed(size, inverse);
}

fn is_fine_unit(unit: u32) -> bool {
  var size = 0u;
  for (var quad = unit * 8u; quad < unit * 8u + 8u; quad++) {
    size = max(size, largest(raw_quad(0u, quad)));
  }
  let inverse = inverse_of(exponent_for(size));
  var excess = 0;
  for (var quad = unit * 8u; quad < unit * 8u + 8u; quad++) {
    let v = raw_quad(0u, quad);
    excess += excess_of(v, integers(v, inverse));
  }
  return is_fine(size, inverse, excess);
}

{% include "linear_q4/row_begins.wgsl" %}
  // As many rounds for all, since shuffles need every thread.
  for (var i = 0u; i < rounds; i++) {
    let there = min(unit, params.units - 1u);
$$ for u in quads
    let w_{$ u $} = weight[(there * 8u + {$ u $}u) * params.down + block];
$$ endfor
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
    var excess = excess_of(v, n);
$$ for step in (1, 2, 4)
    excess += subgroupShuffleXor(excess, {$ step $}u);
$$ endfor
$$ for j in range(8)
    var high_{$ j $} = 0;
    var middle_{$ j $} = 0;
    var low_{$ j $} = 0;
$$ endfor
$$ for u in quads
    {
      let high = subgroupShuffle(bytes.x, base + {$ u $}u);
      let middle = subgroupShuffle(bytes.y, base + {$ u $}u);
      let low = subgroupShuffle(bytes.z, base + {$ u $}u);
$$ for j in range(8)
      {
        // A code less 8 in the upper half of a byte is sixteen times its value.
$$ set word = "w_%d.%s" % (u, "xyzw"[j // 2])
        let codes = ({$ word if j % 2 else "(%s << 4u)" % word $} & 0xf0f0f0f0u) ^ 0x80808080u;
        high_{$ j $} += dot4(codes, high);
        middle_{$ j $} += dot4(codes, middle);
        low_{$ j $} += dot4(codes, low);
      }
$$ endfor
    }
$$ endfor
    let here = unit < params.units;
    let fine = here && is_fine(size, inverse, excess);
    rough = rough || (here && !fine);
    let unit_scale = select(0.0, bitcast<f32>(exponent << 23u), fine);
$$ for half in range(2)
    sums{$ half $} = fma(
      vec4<f32>(vec4<i32>(
$$ for j in range(4 * half, 4 * half + 4)
        high_{$ j $} * 1024 + middle_{$ j $} * 8 + (low_{$ j $} >> 4u){$ ")" if j % 4 == 3 else "," $}
$$ endfor
      ) * unit_scale, scale{$ half $}, sums{$ half $});
$$ endfor
    unit++;
  }
{% set is_left_out = "!is_fine_unit(unit)" %}
{% include "linear_q4/row_ends.wgsl" %}
}
