{# Stores the integers n_0 .. n_7 of block `at` in two bytes each, the lower one of both signs. #}
$$ for half in range(2)
$$ set four = range(4 * half, 4 * half + 4)
  limbs[at * 4u + {$ half $}u] = vec4<u32>(
$$ for q in four
    pack4xI8((n_{$ q $} + vec4<i32>(128)) >> vec4<u32>(8u)){$ "," if not loop.last else ");" $}
$$ endfor
  limbs[at * 4u + {$ 2 + half $}u] = vec4<u32>(
$$ for q in four
    pack4xI8(((n_{$ q $} + vec4<i32>(128)) & vec4<i32>(255)) - vec4<i32>(128)){$ "," if not loop.last else ");" $}
$$ endfor
$$ endfor
