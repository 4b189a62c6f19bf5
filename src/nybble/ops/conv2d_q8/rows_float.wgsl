{% include "std/rows_float.wgsl" %}
