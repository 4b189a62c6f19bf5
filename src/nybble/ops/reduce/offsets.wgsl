{% from "std/strided.wgsl" import strided %}
// Where the elements of one result begin, and where its ``index``-th element lies from there.
fn kept_offset(index: u32) -> u32 {
  var rest = index;
  var at = 0u;
{$ strided(KEPT, "kept_size", {"at": "kept_stride"}) $}
  return at;
}

fn reduced_offset(index: u32) -> u32 {
  var rest = index;
  var at = 0u;
{$ strided(REDUCED, "reduced_size", {"at": "reduced_stride"}) $}
  return at;
}

fn is_nan(value: f32) -> bool {
  return (bitcast<u32>(value) & 0x7fffffffu) > 0x7f800000u;
}
