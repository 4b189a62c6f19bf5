"""Average and maximum pooling of float32 images, rank 3 or 4."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from nybble.contract import Array, Float32, Int32, Kernel, i32, op, rule, u32

__all__ = ["avg_pool2d", "max_pool2d_with_indices"]

Pair = tuple[int, ...]

# A list of one value stands for both axes; an empty stride is the kernel's size.
_DERIVED = {
    "kernel_h": "kernel_size[0]",
    "kernel_w": "kernel_size[-1]",
    "stride_h": "stride[0] if len(stride) > 0 else kernel_size[0]",
    "stride_w": "stride[-1] if len(stride) > 0 else kernel_size[-1]",
    "padding_h": "padding[0] if len(padding) > 0 else 0",
    "padding_w": "padding[-1] if len(padding) > 0 else 0",
}
_OUT = {
    axis: f"pool_out({axis[1]}, kernel_{axis[1]}, stride_{axis[1]}, padding_{axis[1]}, "
    f"dilation_{axis[1]}, ceil_mode)"
    for axis in ("oh", "ow")
}
_RULES = [
    rule("min(kernel_h, kernel_w) >= 1", "kernel sizes must be positive"),
    rule("min(stride_h, stride_w) >= 1", "strides must be positive"),
    rule("min(dilation_h, dilation_w) >= 1", "dilations must be positive"),
    rule(
        "0 <= padding_h <= kernel_h // 2 and 0 <= padding_w <= kernel_w // 2",
        "padding must be at most half of the kernel's size",
    ),
    rule("h > 0 and w > 0 and oh > 0 and ow > 0", "the window must fit in the padded image"),
]
_WINDOW = {
    name: i32(name)
    for name in (
        "h", "w", "oh", "ow", "kernel_h", "kernel_w", "stride_h", "stride_w",
        "padding_h", "padding_w",
    )
}  # fmt: skip


def _windows(size: int, out: int, kernel: int, stride: int, padding: int, dilation: int) -> Array:
    """Positions along one axis that each output's window reads, -1 where outside: [out, kernel]."""
    starts = np.arange(out)[:, None] * stride - padding
    at = starts + np.arange(kernel)[None, :] * dilation
    return np.where((at >= 0) & (at < size), at, -1)


def _pool_extent(size: int, kernel: int, stride: int, padding: int, dilation: int, *,
                 ceil_mode: bool) -> int:  # fmt: skip
    from nybble.contract.expressions import FUNCTIONS

    return int(FUNCTIONS["pool_out"](size, kernel, stride, padding, dilation, ceil_mode))


def _taps(
    shape: Pair, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, *, ceil_mode: bool
) -> tuple[Array, Array]:
    """The rows [oh, kh] and the columns [ow, kw] that every window reads, -1 where outside."""
    stride = stride or kernel
    result = []
    for axis in (0, -1):
        size, pad = shape[-2:][axis], (padding or (0,))[axis]
        extent = _pool_extent(
            size, kernel[axis], stride[axis], pad, dilation[axis], ceil_mode=ceil_mode
        )
        result.append(_windows(size, extent, kernel[axis], stride[axis], pad, dilation[axis]))
    return result[0], result[1]


def _each_tap(rows: Array, columns: Array) -> Iterator[tuple[Array, Array, Array]]:
    """Row, column and validity of each tap of all windows, each [oh, ow], in window order."""
    for i in range(rows.shape[1]):
        for j in range(columns.shape[1]):
            row, column = np.broadcast_arrays(rows[:, i, None], columns[None, :, j])
            yield row, column, (row >= 0) & (column >= 0)


@op(
    "aten.avg_pool2d.default",
    out=Float32[Array, "*batch oh ow"],
    out_variants=["aten.avg_pool2d.out"],
    derived={**_DERIVED, "dilation_h": "1", "dilation_w": "1", **_OUT},
    rules=[
        *_RULES,
        rule("divisor_override is None or divisor_override != 0", "divisor_override must not be 0"),
    ],
    operations="count * kernel_h * kernel_w",
    kernels=[
        Kernel(
            "avg_pool2d.wgsl",
            grid=("cdiv(elements, THREADS)",),
            params={
                "elements": u32("count"),
                **_WINDOW,
                "include_padding": u32("int(count_include_pad)"),
                "divisor": i32("0 if divisor_override is None else divisor_override"),
            },
            constants={"THREADS": 64},
        )
    ],
)
def avg_pool2d(
    x: Float32[Array, "*batch h w"],
    kernel_size: tuple[int, ...],
    stride: tuple[int, ...] = (),
    padding: tuple[int, ...] = (0, 0),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """Mean of each window; padding counts as zeros where ``count_include_pad``.

    A window that hangs over the padded image (ceil mode) is divided by its part inside;
    ``divisor_override`` replaces the divisor.
    """
    rows, columns = _taps(x.shape, kernel_size, stride, padding, (1, 1), ceil_mode=ceil_mode)
    sums = np.zeros((*x.shape[:-2], rows.shape[0], columns.shape[0]))
    inside = np.zeros(sums.shape[-2:])
    for row, column, valid in _each_tap(rows, columns):
        sums += np.where(valid, x[..., row, column], np.float32(0))
        inside += valid
    divisor: Any = inside
    if divisor_override is not None:
        divisor = divisor_override
    elif count_include_pad:
        divisor = _padded_area(x.shape, inside.shape, kernel_size, stride, padding)
    with np.errstate(all="ignore"):
        return (np.where(inside > 0, sums / divisor, 0)).astype(np.float32)


def _padded_area(shape: Pair, out: Pair, kernel: Pair, stride: Pair, padding: Pair) -> Array:
    """Elements of each window within the padded image, [oh, ow]."""
    stride = stride or kernel
    sides = []
    for axis in (0, -1):
        pad = (padding or (0,))[axis]
        start = np.arange(out[axis]) * stride[axis] - pad
        sides.append(np.minimum(start + kernel[axis], shape[-2:][axis] + pad) - start)
    return np.outer(sides[0], sides[1])


@op(
    "aten.max_pool2d_with_indices.default",
    out={"out": Float32[Array, "*batch oh ow"], "indices": Int32[Array, "*batch oh ow"]},
    out_variants=["aten.max_pool2d_with_indices.out"],
    derived={
        **_DERIVED,
        "dilation_h": "dilation[0] if len(dilation) > 0 else 1",
        "dilation_w": "dilation[-1] if len(dilation) > 0 else 1",
        **_OUT,
    },
    rules=_RULES,
    exact=True,
    operations="count * kernel_h * kernel_w",
    kernels=[
        Kernel(
            "max_pool2d.wgsl",
            grid=("cdiv(elements, THREADS)",),
            params={
                "elements": u32("count"),
                **_WINDOW,
                "dilation_h": i32("dilation_h"),
                "dilation_w": i32("dilation_w"),
            },
            constants={"THREADS": 64},
        )
    ],
)
def max_pool2d_with_indices(
    x: Float32[Array, "*batch h w"],
    kernel_size: tuple[int, ...],
    stride: tuple[int, ...] = (),
    padding: tuple[int, ...] = (0, 0),
    dilation: tuple[int, ...] = (1, 1),
    ceil_mode: bool = False,
) -> tuple[Array, Array]:
    """Largest value of each window and its position ``row * w + column`` in the image.

    Padding never wins. The first of equal values is taken; of several NaN, the last.
    """
    dilation = dilation or (1, 1)
    rows, columns = _taps(x.shape, kernel_size, stride, padding, dilation, ceil_mode=ceil_mode)
    shape = (*x.shape[:-2], rows.shape[0], columns.shape[0])
    best = np.full(shape, -np.inf, np.float32)
    indices = np.full(shape, -1, np.int32)
    for row, column, valid in _each_tap(rows, columns):
        value = x[..., row, column]
        wins = valid & ((indices < 0) | (value > best) | np.isnan(value))
        best = np.where(wins, value, best)
        indices = np.where(wins, (row * x.shape[-1] + column).astype(np.int32), indices)
    return best, indices
