{# The offsets of element ``index`` in operands walked along uniform axes, innermost first.
   ``strided(AXES, "size", {"at": "stride"})`` sets each variable from the fields NAME_0.. #}
{% macro strided(axes, size, offsets) %}
$$ for i in range(axes)
    {
$$ if i + 1 < axes
      let along = rest % params.{$ size $}_{$ i $};
      rest = rest / params.{$ size $}_{$ i $};
$$ else
      let along = rest;
$$ endif
$$ for name, stride in offsets.items()
      {$ name $} += along * params.{$ stride $}_{$ i $};
$$ endfor
    }
$$ endfor
{% endmacro %}
