// round_half_even(value / divisor), the quotient first rounded to float32, within -256..256.
// Integers alone: WGSL's own division may err. Subnormals count as zero; a quotient by zero,
// and NaN, give 0.
fn rounded_quotient(value: f32, divisor: f32) -> i32 {
  let v = bitcast<u32>(value) & 0x7fffffffu;
  let d = bitcast<u32>(divisor) & 0x7fffffffu;
  if (v < 0x00800000u || d < 0x00800000u || v > 0x7f800000u || d >= 0x7f800000u) {
    return 0;
  }
  let negative = ((bitcast<u32>(value) ^ bitcast<u32>(divisor)) >> 31u) != 0u;
  let exponent = i32(v >> 23u) - i32(d >> 23u);
  var result = 0;
  if (exponent > 8 || v == 0x7f800000u) {
    result = 256;
  } else if (exponent >= -2) {
    let mantissa = (d & 0x007fffffu) | 0x00800000u;
    let up = u32(max(exponent, 0));
    let down = u32(max(-exponent, 0));
    let numerator = ((v & 0x007fffffu) | 0x00800000u) << up;
    let denominator = mantissa << down;
    let whole = numerator / denominator;
    // Twice the distance from whole + 1/2, in denominators.
    let beyond = i32(2u * (numerator - whole * denominator)) - i32(denominator);
    // As float32 the quotient is whole + 1/2 if it lies within half a unit in the last place.
    let distance = u32(abs(beyond));
    let reach = mantissa << (down + firstLeadingBit(2u * whole + 1u));
    let tie = distance < 256u
      && (distance << 24u) <= (reach >> select(0u, 1u, whole == 0u && beyond < 0));
    result = i32(whole) + select(select(0, 1, beyond > 0), i32(whole & 1u), tie);
    result = min(result, 256);
  }
  return select(result, -result, negative);
}

// Whether 1 / scale and products with it keep float32's relative precision.
fn usual(scale: f32) -> bool {
  let exponent = (bitcast<u32>(scale) >> 23u) & 0xffu;
  return exponent >= 63u && exponent <= 191u;
}

// The same by multiplication, clamped: right unless ``unsure``.
fn quick_quotients(values: vec4<f32>, inverse: f32, low: f32, high: f32) -> vec4<f32> {
  return round(clamp(values * inverse, vec4<f32>(low), vec4<f32>(high)));
}

// Whether a quick quotient lies so near a half that its rounding may be wrong, or is not finite.
fn unsure(values: vec4<f32>, inverse: f32, low: f32, high: f32) -> bool {
  let scaled = clamp(values * inverse, vec4<f32>(low), vec4<f32>(high));
  let bits = bitcast<vec4<u32>>(values) & vec4<u32>(0x7fffffffu);
  return any((abs(scaled - round(scaled)) > vec4<f32>({$ SURE $})) | (bits >= vec4<u32>(0x7f800000u)));
}

fn sure_quotients(values: vec4<f32>, divisors: vec4<f32>, low: f32, high: f32) -> vec4<f32> {
  var result = vec4<f32>();
  for (var i = 0u; i < 4u; i++) {
    result[i] = clamp(f32(rounded_quotient(values[i], divisors[i])), low, high);
  }
  return result;
}
