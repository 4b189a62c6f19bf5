{% include "std/rows_split.wgsl" %}
