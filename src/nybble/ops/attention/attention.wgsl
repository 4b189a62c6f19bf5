{% include "std/functions.wgsl" %}

const LOWEST = -3.4028234663852886e38;
// Scores of ROWS queries against one tile of keys, a key a thread.
var<workgroup> weights: array<f32, {$ ROWS * 64 $}>;
var<workgroup> partial: array<f32, 64>;

fn exp_one(v: f32) -> f32 {
  return exp_of(vec4<f32>(v)).x;
}

fn max_over_tile(value: f32, lane: u32) -> f32 {
  partial[lane] = value;
  workgroupBarrier();
  for (var width = 32u; width > 0u; width /= 2u) {
    if (lane < width) {
      partial[lane] = max(partial[lane], partial[lane + width]);
    }
    workgroupBarrier();
  }
  let largest = partial[0];
  workgroupBarrier();
  return largest;
}

fn sum_over_tile(value: f32, lane: u32) -> f32 {
  partial[lane] = value;
  workgroupBarrier();
  for (var width = 32u; width > 0u; width /= 2u) {
    if (lane < width) {
      partial[lane] += partial[lane + width];
    }
    workgroupBarrier();
  }
  let total = partial[0];
  workgroupBarrier();
  return total;
}

$$ if APPENDED
// The rows from ``start`` on are this call's own, and read there: the cache may not hold them yet.
$$ endif
fn key_at(batch: u32, head: u32, row: u32, i: u32) -> f32 {
$$ if APPENDED
  if (row >= params.start && row < params.start + params.queries) {
    return k[((batch * params.queries + row - params.start) * params.kv_heads + head) * params.depth + i];
  }
$$ endif
$$ if CACHED
  return k_cache[((batch * params.capacity + row) * params.kv_heads + head) * params.depth + i];
$$ else
  return k[((batch * params.kv_heads + head) * params.capacity + row) * params.depth + i];
$$ endif
}

fn value_at(batch: u32, head: u32, row: u32, i: u32) -> f32 {
$$ if APPENDED
  if (row >= params.start && row < params.start + params.queries) {
    return v[((batch * params.queries + row - params.start) * params.kv_heads + head) * params.width + i];
  }
$$ endif
$$ if CACHED
  return v_cache[((batch * params.capacity + row) * params.kv_heads + head) * params.width + i];
$$ else
  return v[((batch * params.kv_heads + head) * params.capacity + row) * params.width + i];
$$ endif
}

// One head and up to ROWS queries a workgroup; keys in tiles of 64 with a running maximum.
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let tiles = (params.queries + {$ ROWS $}u - 1u) / {$ ROWS $}u;
  // A surplus workgroup of a folded grid repeats the last tile: no branch around barriers.
  let item = min(linear_group(group), tiles * params.heads * params.batches - 1u);
  let first_query = item % tiles * {$ ROWS $}u;
  let head = item / tiles % params.heads;
  let batch = item / tiles / params.heads;
  let kv_head = head / (params.heads / params.kv_heads);
$$ if APPENDED
  // Each workgroup appends its share of the new rows; nobody reads them from the caches.
  let stored = params.batches * params.queries * params.kv_heads;
  for (var at = linear_group(group) * 64u + lane; at < stored * params.depth; at += params.stride) {
    let row = at / (params.kv_heads * params.depth);
    let target_row = row / params.queries * params.capacity + params.start + row % params.queries;
    k_cache[target_row * params.kv_heads * params.depth + at % (params.kv_heads * params.depth)] = k[at];
  }
  for (var at = linear_group(group) * 64u + lane; at < stored * params.width; at += params.stride) {
    let row = at / (params.kv_heads * params.width);
    let target_row = row / params.queries * params.capacity + params.start + row % params.queries;
    v_cache[target_row * params.kv_heads * params.width + at % (params.kv_heads * params.width)] = v[at];
  }
$$ endif
$$ for r in range(ROWS)
  let query_{$ r $} = min(first_query + {$ r $}u, params.queries - 1u);
$$ if CACHED
  let q_{$ r $} = ((batch * params.queries + query_{$ r $}) * params.heads + head) * params.depth;
$$ else
  let q_{$ r $} = ((batch * params.heads + head) * params.queries + query_{$ r $}) * params.depth;
$$ endif
  var highest_{$ r $} = LOWEST;
  var total_{$ r $} = 0.0;
$$ for part in range(PARTS)
  var sum_{$ r $}_{$ part $} = 0.0;
$$ endfor
$$ endfor
  for (var begin = 0u; begin < params.length; begin += 64u) {
    let row = min(begin + lane, params.length - 1u);
$$ for r in range(ROWS)
    var score_{$ r $} = 0.0;
$$ endfor
    for (var i = 0u; i < params.depth; i++) {
      let key = key_at(batch, kv_head, row, i);
$$ for r in range(ROWS)
      score_{$ r $} += q[q_{$ r $} + i] * key;
$$ endfor
    }
$$ for r in range(ROWS)
    {
      var score = score_{$ r $} * params.scale;
$$ if "mask" in present
      score += mask[batch * params.mask_batch + head * params.mask_head
        + query_{$ r $} * params.mask_query + row * params.mask_key];
$$ endif
      let visible = begin + lane < params.length{$ " && row <= params.start + query_%d" % r if CAUSAL $};
      let known = select(LOWEST, score, visible && score > LOWEST);
      let highest = max(highest_{$ r $}, max_over_tile(known, lane));
      let fading = exp_one(highest_{$ r $} - highest);
      // Minus infinity weighs nothing, even before any other score has come.
      let counts = visible && bitcast<u32>(score) != 0xff800000u;
      let weight = select(0.0, exp_one(score - highest), counts);
      weights[{$ r * 64 $}u + lane] = weight;
      total_{$ r $} = total_{$ r $} * fading + sum_over_tile(weight, lane);
      highest_{$ r $} = highest;
$$ for part in range(PARTS)
      sum_{$ r $}_{$ part $} *= fading;
$$ endfor
    }
$$ endfor
    let keys = min(64u, params.length - begin);
    for (var j = 0u; j < keys; j++) {
$$ for part in range(PARTS)
      {
        let at = min(lane + {$ part * 64 $}u, params.width - 1u);
        let value = value_at(batch, kv_head, begin + j, at);
$$ for r in range(ROWS)
        sum_{$ r $}_{$ part $} += weights[{$ r * 64 $}u + j] * value;
$$ endfor
      }
$$ endfor
    }
    workgroupBarrier();
  }
$$ for r in range(ROWS)
$$ if CACHED
  let out_{$ r $} = ((batch * params.queries + query_{$ r $}) * params.heads + head) * params.width;
$$ else
  let out_{$ r $} = ((batch * params.heads + head) * params.queries + query_{$ r $}) * params.width;
$$ endif
$$ for part in range(PARTS)
  if (lane + {$ part * 64 $}u < params.width) {
    out[out_{$ r $} + lane + {$ part * 64 $}u] =
      select(sum_{$ r $}_{$ part $} / total_{$ r $}, 0.0, params.length == 0u);
  }
$$ endfor
$$ endfor
}
