"""Conversion between layouts, and copies: what the planner inserts."""

from nybble.contract import CHANNELS4, ROW_MAJOR, AnyTensor, Array, Int8, Kernel, op, u32

_CHANNELS = "(x[1] if len(x) == 4 else x[len(x) - 1] if len(x) > 0 else 1)"
_SHAPE = {
    "channels": u32(_CHANNELS),
    "plane": u32("x[2] * x[3] if len(x) == 4 else 1"),
}


@op(
    "nybble.relayout.default",
    out=Int8[Array, "*shape"],
    exact=True,
    kernels=[
        Kernel(
            "channels4_from_row_major.wgsl",
            grid=("cdiv(words, THREADS)",),
            params={
                **_SHAPE,
                "words": u32(f"numel(x) // max(1, {_CHANNELS}) * cdiv({_CHANNELS}, 4)"),
            },
            constants={"THREADS": 64},
            layouts={"x": ROW_MAJOR, "out": CHANNELS4},
        ),
        Kernel(
            "row_major_from_channels4.wgsl",
            grid=("cdiv(words, THREADS)",),
            params={**_SHAPE, "words": u32("cdiv(count, 4)"), "elements": u32("count")},
            constants={"THREADS": 64},
            layouts={"x": CHANNELS4, "out": ROW_MAJOR},
        ),
    ],
)
def relayout(x: Int8[Array, "*shape"]) -> Array:
    """The same int8 codes, lying in another layout."""
    return x


@op(
    "nybble.copy.default",
    out=AnyTensor[Array, "*shape"],
    exact=True,
    kernels=[
        Kernel(
            "copy.wgsl",
            grid=("cdiv(x_words, THREADS * 4)",),
            params={"vectors": u32("cdiv(x_words, 4)")},
            constants={"THREADS": 256},
            vectors={"x": 4, "out": 4},
        )
    ],
)
def copy(x: AnyTensor[Array, "*shape"]) -> Array:
    """The same words in another buffer, whatever their layout."""
    return x.copy()
