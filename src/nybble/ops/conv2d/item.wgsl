// What a thread computes: TILE output channels of one pixel, all of one group.
struct Item {
  image: u32,
  part: u32,
  first: u32,
  channels: u32,
  pixel: u32,
};

fn item_of(index: u32) -> Item {
  let per_part = params.oc / params.groups;
  let tiles = (per_part + TILE - 1u) / TILE;
  let rest = index / params.pixels;
  let part = rest / tiles % params.groups;
  let within = rest % tiles * TILE;
  return Item(
    rest / tiles / params.groups,
    part,
    part * per_part + within,
    min(TILE, per_part - within),
    index % params.pixels);
}
