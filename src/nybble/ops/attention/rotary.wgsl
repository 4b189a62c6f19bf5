{# A pair (a, b) of ``source`` at offsets found from ``pair``, rotated into ``result``. #}
{% macro rotate(source, result, pair, heads) %}
    let row = {$ pair $} / params.pairs;
    let i = {$ pair $} % params.pairs;
    let step = row / {$ heads $} % params.steps + params.start;
$$ if HALVES
    let first = row * params.depth + i;
    let second = first + params.pairs;
    let angle = step * params.pairs * 2u + i;
    let a = {$ source $}[first];
    let b = {$ source $}[second];
    {$ result $}[first] = a * cos[angle] - b * sin[angle];
    {$ result $}[second] = b * cos[angle + params.pairs] + a * sin[angle + params.pairs];
    // What lies beyond the rotated part passes through.
    for (var at = 2u * params.pairs + i; at < params.depth; at += params.pairs) {
      {$ result $}[row * params.depth + at] = {$ source $}[row * params.depth + at];
    }
$$ else
    let first = row * params.depth + 2u * i;
$$ if INTERLEAVED
    let angle = (step * params.pairs + i) * 2u;
    let c = freqs[angle];
    let s = freqs[angle + 1u];
$$ else
    let angle = step * params.pairs + i;
    let c = cos[angle];
    let s = sin[angle];
$$ endif
    let a = {$ source $}[first];
    let b = {$ source $}[first + 1u];
    {$ result $}[first] = a * c - b * s;
    {$ result $}[first + 1u] = a * s + b * c;
$$ endif
{% endmacro %}
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let item = linear_group(group) * THREADS + lane;
$$ if INTERLEAVED
  if (item < params.items) {
{$ rotate("x", "out", "item", "1u") $}
  }
$$ else
  if (item < params.query_items) {
{$ rotate("xq", "out_q", "item", "params.query_heads") $}
  } else if (item < params.items) {
    let other = item - params.query_items;
{$ rotate("xk", "out_k", "other", "params.key_heads") $}
  }
$$ endif
}
