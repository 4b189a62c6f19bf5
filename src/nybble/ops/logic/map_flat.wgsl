$$ if "_of(" in VALUE
{% include "std/functions.wgsl" %}

$$ endif
// Four elements a thread: a vector of words, or the bytes of one word.
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
  if (word < params.words) {
$$ for name in OPERANDS.split()
    let {$ name $}_4 = {$ "unpack4xU8(%s[word])" % name if name in BYTES.split() else "%s[word]" % name $};
$$ endfor
    out[word] = {$ "pack4xU8(%s)" % VALUE if "out" in BYTES.split() else VALUE $};
  }
}
