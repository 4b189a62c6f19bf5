"""Normalizations: layer, RMS and group norm over rows, batch norm with stored statistics."""

import numpy as np

from nybble.contract import Array, Float32, Kernel, f32, op, rule, u32
from nybble.ops.rows import row_kernels

__all__ = ["batch_norm", "group_norm", "layer_norm", "rms_norm"]

Shape = tuple[int, ...]


def _normalized(rows: Array, eps: float, *, centered: bool) -> tuple[Array, Array, Array]:
    """Rows less their mean over their deviation, the means and 1 / deviation, in double."""
    with np.errstate(all="ignore"):
        wide = rows.astype(np.float64)
        count = np.float64(wide.shape[-1])
        mean = wide.sum(-1, keepdims=True) / count if centered else np.zeros((len(wide), 1))
        moved = wide - mean
        rstd = 1 / np.sqrt(np.square(moved).sum(-1, keepdims=True) / count + np.float64(eps))
        return moved * rstd, mean, rstd


def _scaled(values: Array, weight: Array | None, bias: Array | None) -> Array:
    with np.errstate(all="ignore"):
        values = values if weight is None else values * weight
        values = values if bias is None else values + bias
        return np.asarray(values.astype(np.float32))


def _moments_shape(x: Shape, kept: int) -> Shape:
    return (*x[:kept], *(1 for _ in x[kept:]))


_LAYER = row_kernels(
    "normalize.wgsl",
    rows="numel(x) // max(1, prod(normalized_shape))",
    length="prod(normalized_shape)",
    params={"groups": u32("1"), "inner": u32("1"), "eps": f32("eps")},
    constants={"CENTERED": True},
)


@op(
    "aten.native_layer_norm.default",
    out={
        "out": Float32[Array, "*shape"],
        "mean": Float32[Array, "*moments"],
        "rstd": Float32[Array, "*moments"],
    },
    out_variants=["aten.native_layer_norm.out"],
    derived={
        "kept": "len(x) - len(normalized_shape)",
        "moments": "x[:kept] + (1,) * len(normalized_shape)",
    },
    rules=[
        rule("kept >= 0 and x[kept:] == normalized_shape",
             "the normalized shape must be that of the last axes"),
        rule("weight is None or weight == normalized_shape",
             "the weight must have the normalized shape"),
        rule("bias is None or bias == normalized_shape",
             "the bias must have the normalized shape"),
        rule("eps >= 0", "eps must not be negative"),
    ],
    kernels=_LAYER,
    operations="8 * numel(x)",
)  # fmt: skip
def layer_norm(
    x: Float32[Array, "*shape"],
    normalized_shape: tuple[int, ...],
    weight: Float32[Array, "..."] | None = None,
    bias: Float32[Array, "..."] | None = None,
    eps: float = 1e-5,
) -> tuple[Array, Array, Array]:
    """(x - mean) / sqrt(variance + eps) * weight + bias over the last axes.

    Also returns the means and 1 / sqrt(variance + eps), with the normalized axes of size 1. The
    variance is the mean square of the deviations. A NaN or infinity makes its whole row NaN.
    """
    kept = x.ndim - len(normalized_shape)
    moments = _moments_shape(x.shape, kept)
    rows = x.reshape(int(np.prod(moments)), int(np.prod(normalized_shape)))
    values, mean, rstd = _normalized(rows, eps, centered=True)
    return (
        _scaled(values.reshape(x.shape), weight, bias),
        mean.reshape(moments).astype(np.float32),
        rstd.reshape(moments).astype(np.float32),
    )


@op(
    "et_vk.rms_norm.default",
    out=Float32[Array, "*batch c"],
    rules=[rule("eps >= 0", "eps must not be negative")],
    kernels=row_kernels(
        "normalize.wgsl",
        rows="numel(batch)",
        length="c",
        params={"groups": u32("1"), "inner": u32("1"), "eps": f32("eps")},
        constants={"CENTERED": False},
    ),
    operations="4 * numel(x)",
)
def rms_norm(x: Float32[Array, "*batch c"], weight: Float32[Array, "c"], eps: float) -> Array:
    """x / sqrt(mean(x^2) + eps) * weight over the last axis."""
    values, _, _ = _normalized(x.reshape(-1, x.shape[-1]) if x.size else x, eps, centered=False)
    return _scaled(values.reshape(x.shape), weight, None)


@op(
    "aten.native_group_norm.default",
    out={
        "out": Float32[Array, "n c *rest"],
        "mean": Float32[Array, "n groups"],
        "rstd": Float32[Array, "n groups"],
    },
    out_variants=["aten.native_group_norm.out"],
    derived={"n": "x[0]", "c": "x[1]", "rest": "x[2:]", "inner": "prod(rest)"},
    rules=[
        rule("groups >= 1 and c % groups == 0", "the groups must divide the channels"),
        rule("n == batch and c == channels and inner == size",
             "batch, channels and size must be those of the tensor"),
        rule("weight is None or weight == (c,)", "the weight must have one value a channel"),
        rule("bias is None or bias == (c,)", "the bias must have one value a channel"),
        rule("eps >= 0", "eps must not be negative"),
    ],
    kernels=row_kernels(
        "normalize.wgsl",
        rows="n * groups",
        length="c // groups * inner",
        params={"groups": u32("groups"), "inner": u32("max(1, inner)"), "eps": f32("eps")},
        constants={"CENTERED": True},
    ),
    operations="8 * numel(x)",
)  # fmt: skip
def group_norm(
    x: Float32[Array, "..."],
    weight: Float32[Array, "..."] | None,
    bias: Float32[Array, "..."] | None,
    batch: int,
    channels: int,
    size: int,
    groups: int,
    eps: float,
) -> tuple[Array, Array, Array]:
    """(x - mean) / sqrt(variance + eps) * weight + bias over groups of channels.

    x is [N, C, ...]; weight and bias hold one value a channel. Also returns each group's mean and
    1 / sqrt(variance + eps), [N, groups].
    """
    values, mean, rstd = _normalized(
        x.reshape(batch * groups, channels // groups * size), eps, centered=True
    )
    spread = (channels, *(1 for _ in x.shape[2:]))
    out = _scaled(
        values.reshape(x.shape),
        None if weight is None else weight.reshape(spread),
        None if bias is None else bias.reshape(spread),
    )
    moments = np.stack([mean, rstd]).reshape(2, batch, groups).astype(np.float32)
    return out, moments[0], moments[1]


@op(
    "aten._native_batch_norm_legit_no_training.default",
    out={
        "out": Float32[Array, "*shape"],
        "save_mean": Float32[Array, "0"],
        "save_rstd": Float32[Array, "0"],
    },
    out_variants=["aten._native_batch_norm_legit_no_training.out"],
    derived={"channels": "x[1] if len(x) > 1 else 0"},
    rules=[
        rule("len(x) >= 2", "batch norm needs a channel axis"),
        rule("weight is None or weight == (channels,)", "the weight must have one value a channel"),
        rule("bias is None or bias == (channels,)", "the bias must have one value a channel"),
        rule("mean == (channels,) and variance == (channels,)",
             "mean and variance must have one value a channel"),
    ],
    kernels=[
        Kernel(
            "batch_norm.wgsl",
            grid=("cdiv(elements, THREADS)",),
            params={
                "elements": u32("numel(x)"),
                "channels": u32("channels"),
                "inner": u32("prod(x[2:])"),
                "eps": f32("eps"),
            },
            constants={"THREADS": 64},
            unused=frozenset({"save_mean", "save_rstd"}),
        )
    ],
    operations="4 * numel(x)",
)  # fmt: skip
def batch_norm(
    x: Float32[Array, "*shape"],
    weight: Float32[Array, "..."] | None,
    bias: Float32[Array, "..."] | None,
    mean: Float32[Array, "..."],
    variance: Float32[Array, "..."],
    momentum: float,
    eps: float,
) -> tuple[Array, Array, Array]:
    """(x - mean) / sqrt(variance + eps) * weight + bias with stored statistics of each channel.

    x is [N, C, ...]. The two further results, batch statistics of training, are empty.
    """
    spread = (x.shape[1], *(1 for _ in x.shape[2:]))
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64) - mean.reshape(spread)
        values = wide / np.sqrt(variance.astype(np.float64) + eps).reshape(spread)
    out = _scaled(
        values,
        None if weight is None else weight.reshape(spread),
        None if bias is None else bias.reshape(spread),
    )
    return out, np.zeros(0, np.float32), np.zeros(0, np.float32)
