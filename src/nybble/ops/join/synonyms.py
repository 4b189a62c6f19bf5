"""Operators that are others in another guise."""

from itertools import accumulate
from typing import Any

from nybble.contract import Emit, expansion

__all__: list[str] = []


@expansion("aten.split_with_sizes_copy.default", out_variants=["aten.split_with_sizes_copy.out"])
def split_with_sizes(emit: Emit, x: Any, sizes: Any, dim: int) -> tuple[Any, ...]:
    """Consecutive pieces of an axis, of the given sizes."""
    if sum(sizes) != x.shape[dim]:
        raise ValueError(f"pieces {list(sizes)} do not make up an axis of {x.shape[dim]}")
    return tuple(
        emit("aten.slice_copy.Tensor", x=x, dim=dim, start=end - size, end=end)
        for size, end in zip(sizes, accumulate(sizes), strict=True)
    )


@expansion("aten.unbind_copy.int", out_variants=["aten.unbind_copy.int_out"])
def unbind(emit: Emit, x: Any, dim: int) -> tuple[Any, ...]:
    """Every part of an axis, without that axis."""
    return tuple(emit("aten.select_copy.int", x=x, dim=dim, index=i) for i in range(x.shape[dim]))


@expansion("aten.t_copy.default", out_variants=["aten.t_copy.out"])
def transpose(emit: Emit, x: Any) -> Any:
    """The transpose of a matrix; a vector or scalar as it is."""
    if len(x.shape) > 2:
        raise ValueError(f"a tensor of {len(x.shape)} axes is no matrix")
    return emit("aten.permute_copy.default", x=x, dims=tuple(reversed(range(len(x.shape)))))


@expansion("aten.alias_copy.default", out_variants=["aten.alias_copy.out"])
def alias(emit: Emit, x: Any) -> Any:
    """A copy."""
    return emit("aten.clone.default", x=x)


@expansion("aten.copy.default", out_variants=["aten.copy.out"])
def copy(emit: Emit, x: Any, source: Any, non_blocking: Any) -> Any:
    """``source`` expanded to the shape of x and converted to its element type."""
    cast = emit("aten._to_copy.default", x=source, out_dtype=x.dtype.name)
    return emit("aten.expand_copy.default", x=cast, size=tuple(x.shape))


@expansion("aten.pixel_shuffle.default", out_variants=["aten.pixel_shuffle.out"])
def pixel_shuffle(emit: Emit, x: Any, factor: int) -> Any:
    """[..., C r^2, H, W] to [..., C, H r, W r]: r^2 channels become r x r pixels."""
    *lead, channels, height, width = x.shape
    if factor < 1 or channels % (factor * factor):
        raise ValueError(f"{channels} channels are no multiple of {factor} squared")
    rest = channels // (factor * factor)
    rank = len(lead)
    apart = emit("aten.view_copy.default", x=x, size=(*lead, rest, factor, factor, height, width))
    moved = (*range(rank + 1), rank + 3, rank + 1, rank + 4, rank + 2)
    mixed = emit("aten.permute_copy.default", x=apart, dims=moved)
    size = (*lead, rest, height * factor, width * factor)
    return emit("aten.view_copy.default", x=mixed, size=size)


@expansion("aten.max_pool2d.default", out_variants=["aten.max_pool2d.out"])
def max_pool2d(
    emit: Emit, x: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: Any
) -> Any:
    """The largest element of each window."""
    values, _ = emit(
        "aten.max_pool2d_with_indices.default",
        x=x, kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation,
        ceil_mode=ceil_mode,
    )  # fmt: skip
    return values
