{% include "std/rows_tile.wgsl" %}
