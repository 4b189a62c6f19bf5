// One row by packed integer dot products. Each UNIT, 32 inputs, becomes integers of 22 bits over a
// power of two, in three bytes: products with codes are exact, and a byte of W_4X8 is an operand.
// Neighbouring threads differ in their eight outputs, then in their slice of the units.
{% include "std/dot4.wgsl" %}
{% include "linear_q4/unpack.wgsl" %}
{% include "linear_q4/scales.wgsl" %}
{% include "linear_q4/inputs.wgsl" %}
$$ set slices = THREADS // COLUMNS
$$ set quads = range(8)

// Of each unit eight vectors (high, middle and low bytes of four inputs), then its scale and eight
// times its sum: nine, so that the vectors of neighbouring slices lie in different banks.
var<workgroup> kept: array<vec4<u32>, {$ 9 * CHUNK $}>;

fn largest(v: vec4<u32>) -> u32 {
  return max(max(v.x, v.y), max(v.z, v.w));
}

fn total(v: vec4<i32>) -> i32 {
  return v.x + v.y + v.z + v.w;
}

// Makes integers of a unit. Its scale is 0 where they would lose too much: where inputs are not
// finite, or where one is so large that the others keep fewer than 16 bits on average.
fn keep(unit: u32, slot: u32) {
$$ for u in quads
  let v_{$ u $} = raw_quad(0u, unit * 8u + {$ u $}u);
$$ endfor
  var sizes = vec4<u32>();
$$ for u in quads
  sizes = max(sizes, bitcast<vec4<u32>>(v_{$ u $}) & vec4<u32>(0x7fffffffu));
$$ endfor
  let size = largest(sizes);
  // Values below 2^(e + 1) over 2^(e - 20); both powers stay normal numbers.
  let exponent = u32(clamp(i32(size >> 23u) - 20, 2, 252));
  let inverse = bitcast<f32>((254u - exponent) << 23u);
  var sum = 0;
  var magnitude = vec4<i32>();
  var present = vec4<i32>();
$$ for u in quads
  let n_{$ u $} = clamp(vec4<i32>(round(v_{$ u $} * inverse)), vec4<i32>(-2097151), vec4<i32>(2097151));
  sum += total(n_{$ u $});
  magnitude += abs(n_{$ u $});
  present += select(vec4<i32>(), vec4<i32>(1), v_{$ u $} != vec4<f32>());
  kept[slot * 9u + {$ u $}u] = vec4<u32>(
    pack4xI8(n_{$ u $} >> vec4<u32>(14u)), pack4xI8((n_{$ u $} >> vec4<u32>(7u)) & vec4<i32>(127)),
    pack4xI8(n_{$ u $} & vec4<i32>(127)), 0u);
$$ endfor
  let others = total(magnitude) - i32(round(bitcast<f32>(size) * inverse));
  let fine = size < 0x7f800000u && others >= (total(present) - 1) * 65536;
  kept[slot * 9u + 8u] = vec4<u32>(select(0u, exponent << 23u, fine), bitcast<u32>(sum * 8), 0u, 0u);
}

fn accumulate(v: vec4<f32>, c: vec4<f32>, sum: f32) -> f32 {
  return fma(v.w, c.w, fma(v.z, c.z, fma(v.y, c.y, fma(v.x, c.x, sum))));
}

// Two words, four outputs, by four inputs in float32.
fn accumulate_words(v: vec4<f32>, a: u32, b: u32, sums: vec4<f32>) -> vec4<f32> {
  return vec4<f32>(
    accumulate(v, low_codes(a), sums.x), accumulate(v, high_codes(a), sums.y),
    accumulate(v, low_codes(b), sums.z), accumulate(v, high_codes(b), sums.w));
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
    workgroupBarrier();
    for (var slot = lane; slot < count; slot += THREADS) {
      keep(start + slot, slot);
    }
    workgroupBarrier();
    for (var slot = slice; slot < count; slot += {$ slices $}u) {
      let first = (start + slot) * 8u;
$$ for u in quads
      let w_{$ u $} = weight[(first + {$ u $}u) * params.down + block];
$$ endfor
      let part = first * 4u / params.group;
      let scale0 = scale_quad(part, block * 2u);
      let scale1 = scale_quad(part, block * 2u + 1u);
      let about = kept[slot * 9u + 8u];
      let unit_scale = bitcast<f32>(about.x);
      if (about.x != 0u) {
$$ for i in range(8)
        var high_{$ i $} = 0;
        var middle_{$ i $} = 0;
        var low_{$ i $} = 0;
$$ endfor
$$ for u in quads
        {
          let bytes = kept[slot * 9u + {$ u $}u];
$$ for i in range(8)
          {
            let codes = {$ "(w_%d.%s >> 4u)" % (u, "xyzw"[i // 2]) if i % 2 else "w_%d.%s" % (u, "xyzw"[i // 2]) $} & 0x0f0f0f0fu;
            high_{$ i $} += dot4(codes, bytes.x);
            middle_{$ i $} += dot4(codes, bytes.y);
            low_{$ i $} += dot4(codes, bytes.z);
          }
$$ endfor
        }
$$ endfor
        let offset = bitcast<i32>(about.y);
$$ for half in range(2)
        sums{$ half $} = fma(
          vec4<f32>(vec4<i32>(
$$ for i in range(4 * half, 4 * half + 4)
            high_{$ i $} * 16384 + middle_{$ i $} * 128 + low_{$ i $} - offset{$ ")" if i % 4 == 3 else "," $}
$$ endfor
          ), unit_scale * scale{$ half $}, sums{$ half $});
$$ endfor
      } else {
        var part0 = vec4<f32>();
        var part1 = vec4<f32>();
        for (var u = 0u; u < 8u; u++) {
          let v = raw_quad(0u, first + u);
          let words = weight[(first + u) * params.down + block];
          part0 = accumulate_words(v, words.x, words.y, part0);
          part1 = accumulate_words(v, words.z, words.w, part1);
        }
        sums0 = fma(part0, scale0, sums0);
        sums1 = fma(part1, scale1, sums1);
      }
    }
  }
  workgroupBarrier();
  kept[lane] = bitcast<vec4<u32>>(sums0);
  kept[lane + THREADS] = bitcast<vec4<u32>>(sums1);
  workgroupBarrier();
  for (var width = {$ slices // 2 $}u; width > 0u; width /= 2u) {
    if (slice < width) {
      sums0 += bitcast<vec4<f32>>(kept[lane + width * COLUMNS]);
      sums1 += bitcast<vec4<f32>>(kept[lane + width * COLUMNS + THREADS]);
      kept[lane] = bitcast<vec4<u32>>(sums0);
      kept[lane + THREADS] = bitcast<vec4<u32>>(sums1);
    }
    workgroupBarrier();
  }
  if (slice == 0u && column < params.down) {
    store(0u, column * 2u, sums0);
    store(0u, column * 2u + 1u, sums1);
  }
}
