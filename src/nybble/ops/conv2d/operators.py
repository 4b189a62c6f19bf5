"""float32 convolutions, plain and transposed, of images (rank 4) and sequences (rank 3)."""

from typing import Any

import numpy as np

from nybble.contract import Array, Float32, Kernel, f32, i32, op, rule, u32
from nybble.contract.expressions import FUNCTIONS

__all__ = ["conv_with_clamp", "convolution"]

Shape = tuple[int, ...]
Pair = tuple[int, ...]

# A sequence is an image of one row; a list of one value stands for both axes.
_FLAT = "len(x) == 3"
_DERIVED = {
    "n": "x[0]",
    "ic": "x[1]",
    "h": f"1 if {_FLAT} else x[2]",
    "w": "x[-1]",
    "kh": f"1 if {_FLAT} else weight[2]",
    "kw": "weight[-1]",
    "stride_h": f"1 if {_FLAT} else stride[0]",
    "stride_w": "stride[-1]",
    "padding_h": f"0 if {_FLAT} else padding[0]",
    "padding_w": "padding[-1]",
    "dilation_h": f"1 if {_FLAT} else dilation[0]",
    "dilation_w": "dilation[-1]",
    "extra_h": f"0 if {_FLAT} or not transposed else output_padding[0]",
    "extra_w": "output_padding[-1] if transposed else 0",
    "oc": "weight[1] * groups if transposed else weight[0]",
}
_RULES = [
    rule("len(x) in (3, 4) and len(weight) == len(x)",
         "input and weight must both have rank 3 or both rank 4"),
    rule("groups >= 1 and ic % groups == 0 and oc % groups == 0",
         "the groups must divide input and output channels"),
    rule("weight[0] == ic if transposed else weight[1] * groups == ic",
         "the weight must have the input's channels"),
    rule("bias is None or bias[0] == oc", "the bias must have one value an output channel"),
    rule("min(kh, kw) >= 1", "kernel sizes must be positive"),
    rule("min(stride_h, stride_w) >= 1", "strides must be positive"),
    rule("min(dilation_h, dilation_w) >= 1", "dilations must be positive"),
    rule("min(padding_h, padding_w) >= 0", "padding must not be negative"),
    rule("0 <= extra_h < max(stride_h, dilation_h) and 0 <= extra_w < max(stride_w, dilation_w)",
         "output padding must be smaller than stride or dilation"),
]  # fmt: skip
_OPERATIONS = "2 * numel(weight) * (numel(x) // max(1, ic) if transposed else count // max(1, oc))"
_WINDOW = {
    name: i32(name)
    for name in (
        "h", "w", "kh", "kw", "stride_h", "stride_w", "padding_h", "padding_w",
        "dilation_h", "dilation_w",
    )
}  # fmt: skip


_PIXELS = "(out[-1] * (1 if len(out) == 3 else out[-2]))"
_PARAMS = {
    "images": u32("n"),
    "pixels": u32(_PIXELS),
    "ow": i32("out[-1]"),
    "ic": u32("ic"),
    "oc": u32("oc"),
    "groups": u32("groups"),
    **_WINDOW,
}
# A double beyond float32 (relu's upper bound) is as good as none.
_BOUNDS = {
    "low": f32("-float('inf') if output_min is None or output_min <= -2.0**128 else output_min"),
    "high": f32("float('inf') if output_max is None or output_max >= 2.0**128 else output_max"),
}
_POINTWISE = (
    "not transposed and groups == 1 and kh * kw * stride_h * stride_w == 1"
    f" and padding_h + padding_w == 0 and ic % 4 == 0 and {_PIXELS} % 4 == 0"
)


def _kernels(*, clamped: bool) -> list[Kernel]:
    """An implicit matrix product for one group, else direct kernels; transposed likewise."""
    params = {**_PARAMS, **(_BOUNDS if clamped else {})}
    # Output channels a thread makes: input loads are shared among them.
    tile = "4 if oc // groups >= 4 else oc // groups"
    items = f"n * {_PIXELS} * groups * cdiv(oc // groups, TILE)"
    return [
        Kernel(
            "conv2d_transposed.wgsl",
            grid=(f"cdiv({items}, THREADS)",),
            params=params,
            constants={"THREADS": 64, "TILE": tile, "CLAMPED": clamped},
            when="transposed",
        ),
        Kernel(
            "conv2d_tiled.wgsl",
            grid=(f"cdiv({_PIXELS}, 64) * cdiv(oc, 64) * n",),
            params=params,
            constants={"KH": "kh", "KW": "kw", "CLAMPED": clamped},
            when="not transposed and groups == 1 and oc > 16 and not software",
        ),
        Kernel(
            "conv2d_pointwise.wgsl",
            grid=(f"cdiv(n * {_PIXELS} // 4 * cdiv(oc, 4), THREADS)",),
            params=params,
            constants={"THREADS": 64, "CLAMPED": clamped},
            vectors={"x": 4, "weight": 4, "out": 4},
            when=_POINTWISE,
        ),
        Kernel(
            "conv2d_direct.wgsl",
            grid=(f"cdiv({items}, THREADS)",),
            params=params,
            constants={"THREADS": 64, "TILE": tile, "CLAMPED": clamped},
            when="not transposed",
        ),
    ]


def _images(values: Array) -> Array:
    """Sequences as images of one row."""
    return values[:, :, None] if values.ndim == 3 else values


def _both(values: Pair, *, flat: bool, idle: int) -> tuple[int, int]:
    return (idle if flat else values[0], values[-1])


def _extents(
    x: Shape, weight: Shape, stride: Pair, padding: Pair, dilation: Pair, extra: Pair | None
) -> Shape:
    """Sizes of the result's last axes; ``extra`` is the output padding of a transposed one."""
    axes = len(x) - 2
    sizes = []
    for i in range(axes):
        size, kernel = x[2 + i], weight[2 + i]
        step, pad, gap = (
            values[i if len(values) > 1 else 0] for values in (stride, padding, dilation)
        )
        if extra is None:
            sizes.append(int(FUNCTIONS["conv_out"](size, kernel, step, pad, gap)))
        else:
            more = extra[i if len(extra) > 1 else 0]
            sizes.append((size - 1) * step - 2 * pad + gap * (kernel - 1) + 1 + more)
    return tuple(sizes)


def _out_shape(
    x: Shape,
    weight: Shape,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    transposed: bool,
    output_padding: Pair,
    groups: int,
    **_: Any,
) -> Shape:
    extra = output_padding if transposed else None
    channels = weight[1] * groups if transposed else weight[0]
    return (x[0], channels, *_extents(x, weight, stride, padding, dilation, extra))


def _convolve(
    x: Array, weight: Array, stride: Pair, padding: Pair, dilation: Pair, groups: int, out: Shape
) -> Array:
    """Sum over taps of grouped 1x1 products, in double: [n, oc, oh, ow]."""
    n, channels, height, width = out
    padded = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2)).astype(np.float64)
    taps = weight.astype(np.float64).reshape(groups, channels // groups, *weight.shape[1:])
    total = np.zeros((n, groups, channels // groups, height * width))
    for i in range(weight.shape[2]):
        for j in range(weight.shape[3]):
            top, left = i * dilation[0], j * dilation[1]
            part = padded[
                :, :,
                top : top + (height - 1) * stride[0] + 1 : stride[0],
                left : left + (width - 1) * stride[1] + 1 : stride[1],
            ]  # fmt: skip
            total += taps[None, ..., i, j] @ part.reshape(
                n, groups, weight.shape[1], height * width
            )
    return total.reshape(out)


def _spread(
    x: Array, weight: Array, stride: Pair, padding: Pair, dilation: Pair, groups: int, out: Shape
) -> Array:
    """Every input element times the kernel, added where it lands, in double: [n, oc, oh, ow]."""
    n, channels, height, width = out
    rows, columns = x.shape[2:]
    each = x.shape[1] // groups
    taps = weight.astype(np.float64).reshape(groups, each, *weight.shape[1:]).swapaxes(1, 2)
    source = x.astype(np.float64).reshape(n, groups, each, rows * columns)
    total = np.zeros(out)
    for i in range(weight.shape[2]):
        for j in range(weight.shape[3]):
            part = (taps[None, ..., i, j] @ source).reshape(n, channels, rows, columns)
            row = np.arange(rows) * stride[0] + i * dilation[0] - padding[0]
            column = np.arange(columns) * stride[1] + j * dilation[1] - padding[1]
            fits_row, fits_column = (row >= 0) & (row < height), (column >= 0) & (column < width)
            at = np.ix_(np.arange(n), np.arange(channels), row[fits_row], column[fits_column])
            total[at] += part[:, :, fits_row][..., fits_column]
    return total


@op(
    "aten.convolution.default",
    out=Float32[Array, "..."],
    out_variants=["aten.convolution.out"],
    derived=_DERIVED,
    rules=_RULES,
    kernels=_kernels(clamped=False),
    operations=_OPERATIONS,
    shape=_out_shape,
)
def convolution(
    x: Float32[Array, "..."],
    weight: Float32[Array, "..."],
    bias: Float32[Array, "channels"] | None,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    transposed: bool,
    output_padding: tuple[int, ...],
    groups: int,
) -> Array:
    """Convolution [n, ic, h, w] -> [n, oc, oh, ow], or of sequences [n, ic, w].

    The weight is [oc, ic / groups, kh, kw], transposed [ic, oc / groups, kh, kw].
    """
    out = _out_shape(
        x.shape, weight.shape, stride, padding, dilation, transposed, output_padding, groups
    )
    flat = x.ndim == 3
    total = (_spread if transposed else _convolve)(
        _images(x),
        _images(weight),
        _both(stride, flat=flat, idle=1),
        _both(padding, flat=flat, idle=0),
        _both(dilation, flat=flat, idle=1),
        groups,
        (out[0], out[1], 1 if flat else out[2], out[-1]),
    )
    if bias is not None:
        total += bias.astype(np.float64)[:, None, None]
    return total.reshape(out).astype(np.float32)


@op(
    "et_vk.conv_with_clamp.default",
    out=Float32[Array, "..."],
    derived=_DERIVED,
    rules=_RULES,
    kernels=_kernels(clamped=True),
    operations=_OPERATIONS,
    shape=_out_shape,
)
def conv_with_clamp(
    x: Float32[Array, "..."],
    weight: Float32[Array, "..."],
    bias: Float32[Array, "channels"] | None,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    transposed: bool,
    output_padding: tuple[int, ...],
    groups: int,
    output_min: float | None,
    output_max: float | None,
) -> Array:
    """A convolution whose results are limited to [output_min, output_max]; None leaves it open."""
    result = convolution.reference(
        x, weight, bias, stride, padding, dilation, transposed, output_padding, groups
    )
    with np.errstate(over="ignore"):
        low = np.float32(-np.inf if output_min is None else output_min)
        high = np.float32(np.inf if output_max is None else output_max)
    result = np.where(result < low, low, result)
    return np.where(result > high, high, result)
