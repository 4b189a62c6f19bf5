@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = linear_group(group) * THREADS + lane;
$$ if "hyper" in present
  let lr = hyper[0];
  let beta1 = hyper[1];
  let beta2 = hyper[2];
  let rest1 = hyper[3];
  let rest2 = hyper[4];
  let eps = hyper[5];
  let weight_decay = hyper[6];
  let correction1 = hyper[7];
  let correction2 = hyper[8];
  let applied = fault[0] < 0;
$$ else
  let lr = params.lr;
  let beta1 = params.beta1;
  let beta2 = params.beta2;
  let rest1 = 1.0 - beta1;
  let rest2 = 1.0 - beta2;
  let eps = params.eps;
  let weight_decay = params.weight_decay;
  let correction1 = params.correction1;
  let correction2 = params.correction2;
  let applied = true;
$$ endif
  if (word < params.words && applied) {
    let g = grad[word];
    let first = beta1 * m[word] + rest1 * g;
    let second = beta2 * v[word] + rest2 * (g * g);
    let decayed = param[word] - lr * weight_decay * param[word];
    let divisor = sqrt(second) / sqrt(correction2) + eps;
    param[word] = decayed - lr / correction1 * (first / divisor);
    m[word] = first;
    v[word] = second;
  }
}
