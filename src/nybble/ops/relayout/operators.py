"""Conversion between layouts, and copies: what the planner inserts."""

from nybble.contract import CHANNELS4, ROW_MAJOR, AnyTensor, Array, Kernel, Layout, op, u32
from nybble.ops.linear_q4.layout import W_4X8, W_4X8_HIGH_FIRST

_CHANNELS = "(x[1] if len(x) == 4 else x[len(x) - 1] if len(x) > 0 else 1)"
_INT8 = "x_dtype == 'int8'"
_SHAPE = {
    "channels": u32(_CHANNELS),
    "plane": u32("x[2] * x[3] if len(x) == 4 else 1"),
}


def _w4x8_kernels(layout: Layout) -> list[Kernel]:
    """To and from a layout of 4-bit codes, for uint8 matrices."""
    constants = {"THREADS": 64, "HIGH_FIRST": layout == W_4X8_HIGH_FIRST}
    when = "x_dtype == 'uint8' and len(x) == 2"
    return [
        Kernel(
            "w4x8_from_row_major.wgsl",
            grid=("cdiv(words, THREADS)",),
            params={
                "words": u32("4 * cdiv(x[1], 2) * cdiv(x[0], 8)"),
                "rows": u32("x[0]"),
                "row_bytes": u32("x[1]"),
                "down": u32("cdiv(x[0], 8)"),
            },
            constants=constants,
            layouts={"out": layout},
            when=when,
        ),
        Kernel(
            "row_major_from_w4x8.wgsl",
            grid=("cdiv(words, THREADS)",),
            params={
                "words": u32("cdiv(count, 4)"),
                "elements": u32("count"),
                "row_bytes": u32("x[1]"),
                "down": u32("cdiv(x[0], 8)"),
            },
            constants=constants,
            layouts={"x": layout},
            when=when,
        ),
    ]


@op(
    "nybble.relayout.default",
    out=AnyTensor[Array, "*shape"],
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
            when=_INT8,
        ),
        Kernel(
            "row_major_from_channels4.wgsl",
            grid=("cdiv(words, THREADS)",),
            params={**_SHAPE, "words": u32("cdiv(count, 4)"), "elements": u32("count")},
            constants={"THREADS": 64},
            layouts={"x": CHANNELS4, "out": ROW_MAJOR},
            when=_INT8,
        ),
        *_w4x8_kernels(W_4X8),
        *_w4x8_kernels(W_4X8_HIGH_FIRST),
    ],
)
def relayout(x: AnyTensor[Array, "*shape"]) -> Array:
    """The same codes, int8 or pairs of 4 bits in uint8, lying in another layout."""
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
