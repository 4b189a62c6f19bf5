"""Padding by a constant."""

import numpy as np

from nybble.contract import AnyTensor, Array, Kernel, Param, f32, i32, op, rule, u32
from nybble.ops.strided import MOST_AXES

__all__ = ["pad"]

Shape = tuple[int, ...]


def _padded_shape(x: Shape, pad: Shape, value: float) -> Shape:
    sides = _sides(len(x), pad)
    cut = (-min(0, before) - min(0, after) for before, after in sides)
    if any(gone > n for n, gone in zip(x, cut, strict=True)):
        raise ValueError(f"{list(pad)} cuts off more than there is of {list(x)}")
    return tuple(n + before + after for n, (before, after) in zip(x, sides, strict=True))


def _sides(rank: int, pad: Shape) -> list[tuple[int, int]]:
    """(before, after) of each axis, outermost first; the stored list begins with the last axis."""
    pairs = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    return [(0, 0)] * (rank - len(pairs)) + pairs[::-1]


def _axis_fields() -> dict[str, Param]:
    """The fields of each axis, the innermost first."""
    fields: dict[str, Param] = {}
    for i in range(MOST_AXES):
        inside = f"len(x) > {i}"
        fields[f"out_size_{i}"] = u32(f"max(1, out[-{i + 1}]) if {inside} else 1")
        fields[f"size_{i}"] = u32(f"x[-{i + 1}] if {inside} else 1")
        fields[f"stride_{i}"] = u32(f"stride_of(x, len(x) - {i + 1}) if {inside} else 0")
        before = f"pad[{2 * i}] % 2**32 if {inside} and len(pad) > {2 * i} else 0"
        fields[f"before_{i}"] = u32(before)
    return fields


def _kernel(dtypes: str, value: Param, *, narrow: bool) -> Kernel:
    return Kernel(
        "pad.wgsl",
        grid=(f"cdiv(elements, THREADS * {4 if narrow else 1})",),
        params={"elements": u32("count"), **_axis_fields(), "value": value},
        constants={
            "THREADS": 64,
            "NARROW": narrow,
            "RANK": "len(x)",
            "SCALAR": "'f32' if x_dtype == 'float32' else 'i32'",
        },
        when=f"x_dtype in {dtypes} and len(x) <= {MOST_AXES}",
    )


@op(
    "aten.constant_pad_nd.default",
    out=AnyTensor[Array, "..."],
    out_variants=["aten.constant_pad_nd.out"],
    rules=[
        rule("len(pad) % 2 == 0 and len(pad) <= 2 * len(x)",
             "there must be two counts for each padded axis"),
        rule("x_dtype == 'float32' or (abs(value) < 2.0**31 and value == int(value))",
             "the padding of integers must be an integer"),
        rule("x_dtype not in ('int8', 'uint8') or (-128 <= value <= 127 if x_dtype == 'int8' "
             "else 0 <= value <= 255)",
             "the padding must be a number that the tensor can hold"),
    ],
    kernels=[
        _kernel("('float32',)",
                f32("value if abs(value) < 2.0**128 else value * float('inf')"), narrow=False),
        _kernel("('int32',)", i32("int(value)"), narrow=False),
        _kernel("('int8', 'uint8', 'bool')",
                u32("(1 if value != 0 else 0) if x_dtype == 'bool' else int(value) % 256"),
                narrow=True),
    ],
    operations="0",
    shape=_padded_shape,
    exact=True,
)  # fmt: skip
def pad(x: AnyTensor[Array, "..."], pad: tuple[int, ...], value: float = 0.0) -> Array:
    """The tensor with ``value`` around it.

    ``pad`` holds the counts before and after, of the last axis first; a negative count cuts off.
    A bool is padded by whether ``value`` is not 0.
    """
    sides = _sides(x.ndim, pad)
    kept = tuple(
        slice(max(0, -before), n - max(0, -after))
        for n, (before, after) in zip(x.shape, sides, strict=True)
    )
    grown = [(max(0, before), max(0, after)) for before, after in sides]
    with np.errstate(over="ignore"):
        filler = x.dtype.type(bool(value) if x.dtype == np.bool_ else value)
    return np.pad(x[kept], grown, constant_values=filler) if x.ndim else x.copy()
