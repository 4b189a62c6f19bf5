{% include "std/rows_matrix.wgsl" %}
