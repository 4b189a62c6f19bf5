  // What follows the loop over a slice's units: what it left out in float32, then the slices' sums.
  // Judged here, so that the loop has no more to keep.
  let neighbours = are_neighbours(lane, place, subgroup_size);
  if (!neighbours) {
    sums0 = vec4<f32>();
    sums1 = vec4<f32>();
    rough = true;
  }
  // Beside the other loop, as its own registers would be too many within it.
  if (rough) {
    for (unit = first; unit < min(first + rounds, params.units); unit++) {
      if (!neighbours || {$ is_left_out $}) {
        let part = unit / GROUP_UNITS;
        var part0 = vec4<f32>();
        var part1 = vec4<f32>();
        for (var quad = unit * 8u; quad < unit * 8u + 8u; quad++) {
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
$$ set lines = [16, THREADS // 16] | min
  partial[lane * 2u] = sums0;
  partial[lane * 2u + 1u] = sums1;
  workgroupBarrier();
  // The slices' sums in two steps: a barrier for each halving would take longer.
  if (lane < {$ 16 * lines $}u) {
    var sum = partial[lane];
$$ for i in range(1, slices // lines)
    sum += partial[lane + {$ 16 * lines * i $}u];
$$ endfor
    partial[lane] = sum;
  }
  workgroupBarrier();
  let result = linear_group(group) * 16u + lane;
  if (lane < 16u && result < params.down * 2u) {
    var sum = partial[lane];
$$ for i in range(1, lines)
    sum += partial[lane + {$ 16 * i $}u];
$$ endfor
    store(0u, result, sum);
  }
