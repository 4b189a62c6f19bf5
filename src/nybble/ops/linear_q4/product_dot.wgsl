// One row by packed integer dot products. Each UNIT, 32 inputs, becomes integers of 22 bits over a
// power of two, in three bytes: products with codes are exact, and a byte of W_4X8 is an operand.
// Neighbouring threads differ in their eight outputs, then in their slice of the units.
{% include "linear_q4/unpack.wgsl" %}
{% include "linear_q4/scales.wgsl" %}
{% include "linear_q4/inputs.wgsl" %}
{% include "linear_q4/results.wgsl" %}
{% include "linear_q4/row_integers.wgsl" %}
$$ set slices = THREADS // COLUMNS
$$ set quads = range(8)
$$ set own = range(8 * CHUNK // THREADS)
$$ set lines = [16, slices] | min

// Of each unit eight vectors (high, middle and low bytes of four inputs, and by how much those
// exceed 2^16 in all), then its scale and what the unit must exceed: nine, so that the vectors of
// neighbouring slices lie in different banks.
var<workgroup> kept: array<vec4<u32>, {$ [9 * CHUNK, 2 * THREADS] | max $}>;
// The largest of each four inputs.
var<workgroup> sizes: array<u32, {$ 8 * CHUNK $}>;

// Makes integers of four inputs of a unit. The scale is 0 where inputs are not finite.
fn keep(v: vec4<f32>, quad: u32) {
  var size = 0u;
$$ for u in quads
  size = max(size, sizes[quad / 8u * 8u + {$ u $}u]);
$$ endfor
  let exponent = exponent_for(size);
  let inverse = inverse_of(exponent);
  let n = integers(v, inverse);
  kept[quad / 8u * 9u + quad % 8u] = vec4<u32>(three_bytes(n), bitcast<u32>(excess_of(v, n)));
  if (quad % 8u == 0u) {
    kept[quad / 8u * 9u + 8u] = vec4<u32>(
      select(0u, exponent << 23u, size < 0x7f800000u),
      bitcast<u32>(excess_needed(size, inverse)), 0u, 0u);
  }
}

// Whether integers serve: not where inputs are not finite, or where one is so large that the
// others keep fewer than 16 bits on average.
fn is_fine(about: vec4<u32>, excess: i32) -> bool {
  return about.x != 0u && excess >= bitcast<i32>(about.y);
}

fn fine_unit(slot: u32) -> bool {
  var excess = 0;
  for (var u = 0u; u < 8u; u++) {
    excess += bitcast<i32>(kept[slot * 9u + u].w);
  }
  return is_fine(kept[slot * 9u + 8u], excess);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let column = linear_group(group) * COLUMNS + lane % COLUMNS;
  let slice = lane / COLUMNS;
  let block = min(column, params.down - 1u);
  var sums0 = vec4<f32>();
  var sums1 = vec4<f32>();
  for (var start = 0u; start < params.units; start += CHUNK) {
    let count = min(CHUNK, params.units - start);
$$ for j in own
    let v_{$ j $} = raw_quad(0u, min(start * 8u + lane + {$ j * THREADS $}u, params.quads - 1u));
$$ endfor
    if (start > 0u) {
      workgroupBarrier();
    }
$$ for j in own
    sizes[lane + {$ j * THREADS $}u] = largest(v_{$ j $});
$$ endfor
    workgroupBarrier();
$$ for j in own
    keep(v_{$ j $}, lane + {$ j * THREADS $}u);
$$ endfor
    workgroupBarrier();
    var rough = false;
    for (var slot = slice; slot < count; slot += {$ slices $}u) {
      let first = (start + slot) * 8u;
      let part = (start + slot) / GROUP_UNITS;
      let scale0 = scale_quad(part, block * 2u);
      let scale1 = scale_quad(part, block * 2u + 1u);
$$ for u in quads
      let w_{$ u $} = weight[(first + {$ u $}u) * params.down + block];
$$ endfor
      var excess = 0;
$$ for i in range(8)
      var high_{$ i $} = 0;
      var middle_{$ i $} = 0;
      var low_{$ i $} = 0;
$$ endfor
$$ for u in quads
      {
        let bytes = kept[slot * 9u + {$ u $}u];
        excess += bitcast<i32>(bytes.w);
        // A code less 8 in the upper half of a byte is sixteen times its value.
$$ for i in range(8)
        {
          let codes = ({$ "w_%d.%s" % (u, "xyzw"[i // 2]) if i % 2 else "(w_%d.%s << 4u)" % (u, "xyzw"[i // 2]) $} & 0xf0f0f0f0u) ^ 0x80808080u;
          high_{$ i $} += dot4(codes, bytes.x);
          middle_{$ i $} += dot4(codes, bytes.y);
          low_{$ i $} += dot4(codes, bytes.z);
        }
$$ endfor
      }
$$ endfor
      let about = kept[slot * 9u + 8u];
      let fine = is_fine(about, excess);
      let unit_scale = select(0.0, bitcast<f32>(about.x), fine);
      rough = rough || !fine;
$$ for half in range(2)
      sums{$ half $} = fma(
        vec4<f32>(vec4<i32>(
$$ for i in range(4 * half, 4 * half + 4)
          high_{$ i $} * 1024 + middle_{$ i $} * 8 + (low_{$ i $} >> 4u){$ ")" if i % 4 == 3 else "," $}
$$ endfor
        ) * unit_scale, scale{$ half $}, sums{$ half $});
$$ endfor
    }
    // Beside the other loop, as its own registers would be too many within it.
    if (rough) {
      for (var slot = slice; slot < count; slot += {$ slices $}u) {
        if (!fine_unit(slot)) {
          let part = (start + slot) / GROUP_UNITS;
          var part0 = vec4<f32>();
          var part1 = vec4<f32>();
          for (var quad = (start + slot) * 8u; quad < (start + slot + 1u) * 8u; quad++) {
            let v = raw_quad(0u, quad);
            let words = weight[quad * params.down + block];
            part0 = accumulate_words(v, words.x, words.y, part0);
            part1 = accumulate_words(v, words.z, words.w, part1);
          }
          sums0 = fma(part0, scale_quad(part, block * 2u), sums0);
          sums1 = fma(part1, scale_quad(part, block * 2u + 1u), sums1);
        }
      }
    }
  }
  workgroupBarrier();
  kept[lane * 2u] = bitcast<vec4<u32>>(sums0);
  kept[lane * 2u + 1u] = bitcast<vec4<u32>>(sums1);
  workgroupBarrier();
  // The slices' sums in two steps: a barrier for each halving would take longer.
  var sum = vec4<f32>();
  if (lane < {$ 2 * COLUMNS * lines $}u) {
$$ for i in range(slices // lines)
    sum += bitcast<vec4<f32>>(kept[lane + {$ 2 * COLUMNS * lines * i $}u]);
$$ endfor
  }
  workgroupBarrier();
  if (lane < {$ 2 * COLUMNS * lines $}u) {
    kept[lane] = bitcast<vec4<u32>>(sum);
  }
  workgroupBarrier();
  let result = linear_group(group) * {$ 2 * COLUMNS $}u + lane;
  if (lane < {$ 2 * COLUMNS $}u && result < params.down * 2u) {
    sum = vec4<f32>();
$$ for i in range(lines)
    sum += bitcast<vec4<f32>>(kept[lane + {$ 2 * COLUMNS * i $}u]);
$$ endfor
    store(0u, result, sum);
  }
}
