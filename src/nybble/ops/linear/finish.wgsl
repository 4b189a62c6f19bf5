// What is added to a finished product sum.
fn finish(sum: f32, row: u32, column: u32) -> f32 {
$$ if "bias" in present
  return sum + bias[column];
$$ elif "addend" in present
  var result = params.alpha * sum;
  if (params.beta != 0.0) {
    result += params.beta * addend[row * params.addend_row + column * params.addend_column];
  }
  return result;
$$ else
  return sum;
$$ endif
}
