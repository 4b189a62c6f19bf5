@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let index = linear_group(group) * THREADS + lane;
  if (index < params.elements) {
    let channel = index / params.inner % params.channels;
    var v = (x[index] - mean[channel]) / sqrt(variance[channel] + params.eps);
$$ if "weight" in present
    v *= weight[channel];
$$ endif
$$ if "bias" in present
    v += bias[channel];
$$ endif
    out[index] = v;
  }
}
