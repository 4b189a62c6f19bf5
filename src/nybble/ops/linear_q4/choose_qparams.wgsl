// Scale and zero point of four rows a workgroup: the zero points are one word.
const SMALLEST = 6.1e-5f;
const LARGEST = 8.507059173023462e37f;

var<workgroup> low: array<f32, THREADS>;
var<workgroup> high: array<f32, THREADS>;
var<workgroup> codes: array<i32, 4>;

// The correctly rounded quotient of a finite value's magnitude and a normal divisor; 0 where
// that is subnormal.
fn quotient(value: f32, divisor: f32) -> f32 {
  let v = bitcast<u32>(value) & 0x7fffffffu;
  let d = bitcast<u32>(divisor);
  let mantissa = (d & 0x007fffffu) | 0x00800000u;
  var rest = (v & 0x007fffffu) | 0x00800000u;
  var exponent = i32(v >> 23u) - i32(d >> 23u) + 127;
  if (rest < mantissa) {
    rest *= 2u;
    exponent -= 1;
  }
  var digits = 0u;
  for (var i = 0u; i < 24u; i++) {
    let fits = rest >= mantissa;
    digits = digits * 2u + select(0u, 1u, fits);
    rest = (rest - select(0u, mantissa, fits)) * 2u;
  }
  digits += select(0u, 1u, rest > mantissa || (rest == mantissa && digits % 2u == 1u));
  let normal = v >= 0x00800000u && (exponent > 0 || (exponent == 0 && digits == 0x01000000u));
  let bits = (u32(max(exponent, 0)) << 23u) + digits - 0x00800000u;
  return select(0.0, bitcast<f32>(bits), normal);
}

// Without NaN, infinities and subnormals: NaN and subnormals count as zero.
fn counted(value: f32) -> f32 {
  let bits = bitcast<u32>(value) & 0x7fffffffu;
  return select(clamp(value, -LARGEST, LARGEST), 0.0, bits < 0x00800000u || bits > 0x7f800000u);
}

fn choose(row: u32, place: u32, least: f32, most: f32) {
  var a = least;
  var b = most;
  let range = params.code_max - params.code_min;
  var scale = quotient(b - a, range);
  if (scale == 0.0) {
    scale = 0.1;
  }
  if (scale < SMALLEST) {
    let factor = quotient(SMALLEST, scale);
    scale = SMALLEST;
    if (a == 0.0) {
      b = SMALLEST * range;
    } else if (b == 0.0) {
      a = -(SMALLEST * range);
    } else {
      a *= factor;
      b *= factor;
    }
  }
  let below = quotient(-a, scale);
  let above = quotient(b, scale);
  let from_least = abs(params.code_min) - below < abs(params.code_max) - above;
  let code = select(params.code_max - above, params.code_min + below, from_least);
  codes[place] = i32(round(clamp(code, params.code_min, params.code_max)));
  if (row < params.rows) {
    scale_out[row] = scale;
  }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group);
  let slice = lane % {$ THREADS // 4 $}u;
  let place = lane / {$ THREADS // 4 $}u;
  let row = word * 4u + place;
  let start = min(row, params.rows - 1u) * params.k;
  var least = 0.0;
  var most = 0.0;
  for (var i = slice; i < params.k; i += {$ THREADS // 4 $}u) {
    let value = counted(x[start + i]);
    least = min(least, value);
    most = max(most, value);
  }
  low[lane] = least;
  high[lane] = most;
  workgroupBarrier();
  for (var width = {$ THREADS // 8 $}u; width > 0u; width /= 2u) {
    if (slice < width) {
      low[lane] = min(low[lane], low[lane + width]);
      high[lane] = max(high[lane], high[lane + width]);
    }
    workgroupBarrier();
  }
  if (slice == 0u) {
    choose(row, place, low[lane], high[lane]);
  }
  workgroupBarrier();
  if (lane == 0u && word < params.words) {
    zero_point[word] = pack4xI8(vec4<i32>(codes[0], codes[1], codes[2], codes[3]));
  }
}
