{% include "reduce/offsets.wgsl" %}

// Whether ``v`` at ``place`` goes before ``best``: NaN before all, of equals the first.
fn precedes(v: f32, place: u32, best: f32, best_place: u32) -> bool {
  let beats = (v {$ RELATION $} best || is_nan(v)) && !is_nan(best);
  let ties = (v == best && !is_nan(v)) || (is_nan(v) && is_nan(best));
  return beats || (ties && place < best_place);
}

$$ if WIDE
var<workgroup> values: array<f32, THREADS>;
var<workgroup> places: array<u32, THREADS>;
$$ endif

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
$$ if WIDE
  // A surplus workgroup of a folded grid repeats the last result: no branch around barriers.
  let result = min(linear_group(group), params.results - 1u);
  let base = kept_offset(result);
  var place = min(lane, params.length - 1u);
  var best = x[base + reduced_offset(place)];
  for (var i = lane; i < params.length; i += THREADS) {
    let v = x[base + reduced_offset(i)];
    if (precedes(v, i, best, place)) {
      best = v;
      place = i;
    }
  }
  values[lane] = best;
  places[lane] = place;
  workgroupBarrier();
  for (var width = THREADS / 2u; width > 0u; width /= 2u) {
    if (lane < width) {
      if (precedes(values[lane + width], places[lane + width], values[lane], places[lane])) {
        values[lane] = values[lane + width];
        places[lane] = places[lane + width];
      }
    }
    workgroupBarrier();
  }
  if (lane == 0u) {
    out[result] = i32(places[0]);
  }
$$ else
  let result = linear_group(group) * THREADS + lane;
  if (result < params.results) {
    let base = kept_offset(result);
    var place = 0u;
    var best = x[base];
    for (var i = 1u; i < params.length; i++) {
      let v = x[base + reduced_offset(i)];
      if (precedes(v, i, best, place)) {
        best = v;
        place = i;
      }
    }
    out[result] = i32(place);
  }
$$ endif
}
