{# Rows walked by one workgroup each (WIDE), or by one thread each. ``row_of`` and ``over_row`` hide
   which: a body is written once, for ``first``, ``step`` and the sum or maximum over a row. #}
$$ if WIDE
var<workgroup> partial: array<f32, THREADS>;
$$ endif

// A surplus lane or workgroup repeats the last row: no branch around barriers.
fn row_of(group: vec3<u32>, lane: u32) -> u32 {
$$ if WIDE
  return min(linear_group(group), params.rows - 1u);
$$ else
  return min(linear_group(group) * THREADS + lane, params.rows - 1u);
$$ endif
}

fn first_of(lane: u32) -> u32 {
  return {$ "lane" if WIDE else "0u" $};
}

fn step_of() -> u32 {
  return {$ "THREADS" if WIDE else "1u" $};
}

fn sum_over_row(value: f32, lane: u32) -> f32 {
$$ if WIDE
  partial[lane] = value;
  workgroupBarrier();
  for (var width = THREADS / 2u; width > 0u; width /= 2u) {
    if (lane < width) {
      partial[lane] += partial[lane + width];
    }
    workgroupBarrier();
  }
  let total = partial[0];
  workgroupBarrier();
  return total;
$$ else
  return value;
$$ endif
}

// NaN may be lost: what uses it must meet the NaN again.
fn max_over_row(value: f32, lane: u32) -> f32 {
$$ if WIDE
  partial[lane] = value;
  workgroupBarrier();
  for (var width = THREADS / 2u; width > 0u; width /= 2u) {
    if (lane < width) {
      partial[lane] = select(partial[lane], partial[lane + width], partial[lane + width] > partial[lane]);
    }
    workgroupBarrier();
  }
  let largest = partial[0];
  workgroupBarrier();
  return largest;
$$ else
  return value;
$$ endif
}

// Long sums are taken in parts: the error then grows with length / PART, not length.
const PART = 64u;
