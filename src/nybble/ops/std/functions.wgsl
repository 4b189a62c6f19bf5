// float32 functions to about 2 units in the last place: WGSL's own promise far less, sine and
// exponential most of all. NaN stays NaN. Polynomials are the classic minimax ones of float32.

fn infinity_of() -> vec4<f32> {
  return vec4<f32>(bitcast<f32>(params.zero | 0x7f800000u));
}

fn nan_of() -> vec4<f32> {
  return vec4<f32>(bitcast<f32>(params.zero | 0x7fc00000u));
}

{% include "std/nan.wgsl" %}

fn power_of_two(n: vec4<i32>) -> vec4<f32> {
  return bitcast<vec4<f32>>((n + 127) << vec4<u32>(23u));
}

// WGSL promises a quotient only for divisors up to 2^126; larger ones are scaled down first.
fn quotient_of(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
  let large = (abs(b) > vec4<f32>(8.5e37)) & (abs(b) < infinity_of());
  return select(a / b, (a * 0.0625) / (b * 0.0625), large);
}

fn exp_of(v: vec4<f32>) -> vec4<f32> {
  let high = vec4<f32>(89.0);
  let low = vec4<f32>(-104.0);
  let above = select(v, high, v > high);
  let x = select(above, low, above < low);
  let n = round(x * 1.44269504);
  let r = (x - n * 0.693359375) + n * 2.12194440e-4;
  var y = r * 1.9875691500e-4 + 1.3981999507e-3;
  y = y * r + 8.3334519073e-3;
  y = y * r + 4.1665795894e-2;
  y = y * r + 1.6666665459e-1;
  y = y * r + 5.0000001201e-1;
  y = y * r * r + r + 1.0;
  // Two factors: the power alone leaves float32's range at both ends.
  let exponent = clamp(vec4<i32>(n), vec4<i32>(-150), vec4<i32>(128));
  let half = exponent / 2;
  return select(y * power_of_two(half) * power_of_two(exponent - half), v, is_nan_of(v));
}

fn log_of(v: vec4<f32>) -> vec4<f32> {
  let bits = bitcast<vec4<i32>>(v);
  var e = vec4<f32>((bits >> vec4<u32>(23u)) - 126);
  var m = bitcast<vec4<f32>>((bits & vec4<i32>(0x007fffff)) | vec4<i32>(0x3f000000));
  let small = m < vec4<f32>(0.70710678);
  e = select(e, e - 1.0, small);
  m = select(m, m + m, small) - 1.0;
  let z = m * m;
  var y = m * 7.0376836292e-2 - 1.1514610310e-1;
  y = y * m + 1.1676998740e-1;
  y = y * m - 1.2420140846e-1;
  y = y * m + 1.4249322787e-1;
  y = y * m - 1.6668057665e-1;
  y = y * m + 2.0000714765e-1;
  y = y * m - 2.4999993993e-1;
  y = y * m + 3.3333331174e-1;
  y = y * m * z - e * 2.12194440e-4 - 0.5 * z;
  let finite = m + y + e * 0.693359375;
  // Subnormals count as zero, as the arithmetic of most GPUs has them.
  let tiny = abs(v) < vec4<f32>(1.17549435e-38);
  var result = select(finite, -infinity_of(), tiny);
  result = select(result, nan_of(), (v < vec4<f32>()) & !tiny);
  return select(result, v, (v == infinity_of()) | is_nan_of(v));
}

fn power_of(base: vec4<f32>, exponent: vec4<f32>) -> vec4<f32> {
  let magnitude = abs(base);
  var result = exp_of(exponent * log_of(magnitude));
  let whole = exponent == floor(exponent);
  let odd = fract(exponent * 0.5) == vec4<f32>(0.5);
  let negative = (bitcast<vec4<u32>>(base) >> vec4<u32>(31u)) == vec4<u32>(1u);
  let one = vec4<f32>(1.0);
  result = select(result, one, (exponent == vec4<f32>()) | (magnitude == one));
  result = select(result, -result, negative & odd);
  return select(result, nan_of(), (base < vec4<f32>()) & (magnitude < infinity_of()) & !whole);
}

// Sine of v plus ``turn`` right angles.
fn sin_turned(v: vec4<f32>, turn: i32) -> vec4<f32> {
  let n = round(v * 0.636619772);
  let r = ((v - n * 1.5703125) - n * 4.8351287841796875e-4) - n * 3.1385570764541626e-7
    - n * 6.0771005065061922e-11;
  let z = r * r;
  let sine = ((z * -1.9515295891e-4 + 8.3321608736e-3) * z - 1.6666654611e-1) * z * r + r;
  let cosine = ((z * 2.443315711809948e-5 - 1.388731625493765e-3) * z + 4.166664568298827e-2)
    * z * z - 0.5 * z + 1.0;
  let quadrant = vec4<i32>(n) + turn;
  let folded = select(sine, cosine, (quadrant & vec4<i32>(1)) == vec4<i32>(1));
  let signed_value = select(folded, -folded, (quadrant & vec4<i32>(2)) == vec4<i32>(2));
  // Of an angle so large that its reduction lost every digit, at least the range is right; of one
  // so large that the square of what is left overflows, too.
  let one = vec4<f32>(1.0);
  let bounded = select(select(signed_value, one, signed_value > one), -one, signed_value < -one);
  let finite = (bitcast<vec4<u32>>(v) & vec4<u32>(0x7fffffffu)) < vec4<u32>(0x7f800000u);
  let defined = select(signed_value, vec4<f32>(), finite);
  return select(bounded, defined, is_nan_of(signed_value));
}

fn sin_of(v: vec4<f32>) -> vec4<f32> {
  return sin_turned(v, 0);
}

fn cos_of(v: vec4<f32>) -> vec4<f32> {
  return sin_turned(v, 1);
}

fn tanh_of(v: vec4<f32>) -> vec4<f32> {
  let z = v * v;
  var y = z * -5.70498872745e-3 + 2.06390887954e-2;
  y = y * z - 5.37397155531e-2;
  y = y * z + 1.33314422036e-1;
  y = y * z - 3.33332819422e-1;
  y = y * z * v + v;
  let far = 1.0 - 2.0 / (exp_of(2.0 * abs(v)) + 1.0);
  return select(y, select(far, -far, v < vec4<f32>()), abs(v) > vec4<f32>(0.625));
}

// Complementary error function, relative error below 1.2e-7 (Chebyshev fit in 1 / (1 + z / 2)).
fn erfc_of(v: vec4<f32>) -> vec4<f32> {
  let z = abs(v);
  let t = 1.0 / (1.0 + 0.5 * z);
  var y = t * 0.17087277 - 0.82215223;
  y = y * t + 1.48851587;
  y = y * t - 1.13520398;
  y = y * t + 0.27886807;
  y = y * t - 0.18628806;
  y = y * t + 0.09678418;
  y = y * t + 0.37409196;
  y = y * t + 1.00002368;
  y = y * t - 1.26551223;
  let tail = t * exp_of(y - z * z);
  return select(tail, 2.0 - tail, v < vec4<f32>());
}

fn gelu_of(v: vec4<f32>) -> vec4<f32> {
  return 0.5 * v * erfc_of(v * -0.70710678);
}

fn gelu_tanh_of(v: vec4<f32>) -> vec4<f32> {
  return v / (1.0 + exp_of(v * (v * v * -0.0713548163 - 1.59576912)));
}

// a - n * b exactly, for n the integer nearest to a / b: by halves of 12 bits, whose products are
// exact.
fn rest_of(a: vec4<f32>, b: vec4<f32>, n: vec4<f32>) -> vec4<f32> {
  let n_high = bitcast<vec4<f32>>(bitcast<vec4<u32>>(n) & vec4<u32>(0xfffff000u));
  let b_high = bitcast<vec4<f32>>(bitcast<vec4<u32>>(b) & vec4<u32>(0xfffff000u));
  let n_low = n - n_high;
  let b_low = b - b_high;
  // Kept apart from the difference below: fused with it, its error would count twice.
  let product = bitcast<vec4<f32>>(bitcast<vec4<u32>>(n * b) ^ vec4<u32>(params.zero));
  let error = ((n_high * b_high - product) + n_high * b_low + n_low * b_high) + n_low * b_low;
  return select((a - product) - error, a, n == vec4<f32>());
}

// The largest integer not above the exact quotient.
fn floor_quotient_of(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
  let quotient = a / b;
  let n = round(quotient);
  let rest = rest_of(a, b, n);
  let below = (rest != vec4<f32>()) & ((rest < vec4<f32>()) != (b < vec4<f32>()));
  let small = abs(quotient) < vec4<f32>(8388608.0);
  let finite = select(floor(quotient), select(n, n - 1.0, below), small);
  let endless = (abs(a) == infinity_of()) & (b != vec4<f32>());
  return select(finite, nan_of(), endless);
}

// The float32 nearest to the quotient, toward zero; WGSL's own division may miss that float32.
fn truncated_quotient_of(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
  let quotient = abs(a / b);
  let n = round(quotient);
  let rest = rest_of(abs(a), abs(b), n);
  let previous = bitcast<vec4<f32>>(max(bitcast<vec4<u32>>(n), vec4<u32>(1u)) - 1u);
  let below = rest < (n - previous) * -0.5 * abs(b);
  let small = quotient < vec4<f32>(8388608.0);
  let magnitude = select(floor(quotient), select(n, n - 1.0, below), small);
  let negative = (bitcast<vec4<u32>>(a) ^ bitcast<vec4<u32>>(b)) >> vec4<u32>(31u);
  return select(magnitude, -magnitude, negative == vec4<u32>(1u));
}
