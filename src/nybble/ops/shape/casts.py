"""Conversions between element types; the result's type is the program's."""

from collections.abc import Callable
from typing import Any

import numpy as np

from nybble.contract import Alias, AnyTensor, Array, Kernel, op, u32

__all__: list[str] = []

# A word of bytes is four elements, as is a vector of words: each thread makes four.
_UNSIGNED, _SIGNED = "vec4<f32>(unpack4xU8(v))", "vec4<f32>(unpack4xI8(v))"
_CASTS = {
    ("float32", "int32"): "integers_of(v)",
    ("int32", "float32"): "vec4<f32>(v)",
    ("bool", "float32"): _UNSIGNED,
    ("uint8", "float32"): _UNSIGNED,
    ("int8", "float32"): _SIGNED,
    ("bool", "int32"): "vec4<i32>(unpack4xU8(v))",
    ("float32", "bool"): "pack4xU8(select(vec4<u32>(1u), vec4<u32>(), v == vec4<f32>()))",
    ("int32", "bool"): "pack4xU8(select(vec4<u32>(1u), vec4<u32>(), v == vec4<i32>()))",
}


def _same_shape(x: tuple[int, ...], **_: Any) -> tuple[int, ...]:
    return x


def _cast(x: Array, out_dtype: str | None) -> Array:
    target = np.dtype(out_dtype or x.dtype)
    if x.dtype.kind == "f" and target.kind in "iu":
        bounds = np.iinfo(target)
        wide = np.clip(np.nan_to_num(x.astype(np.float64), nan=0.0), bounds.min, bounds.max)
        return np.trunc(wide).astype(target)
    return x.astype(target)


def _kernels() -> list[Kernel | Alias]:
    """No work for equal types; a kernel for each pair that a delegate can hold."""
    result: list[Kernel | Alias] = [Alias("x", when="out_dtype is None or x_dtype == out_dtype")]
    for (source, target), value in _CASTS.items():
        wide = {"x": source, "out": target}
        result.append(
            Kernel(
                "cast.wgsl",
                grid=("cdiv(words, THREADS)",),
                params={"words": u32("cdiv(count, 4)")},
                constants={"THREADS": 256, "VALUE": repr(value)},
                vectors={name: 4 for name, dtype in wide.items() if dtype in ("float32", "int32")},
                when=f"x_dtype == '{source}' and out_dtype == '{target}'",
            )
        )
    return result


_ABOUT = """Elements converted to the result's type, or copied.

float32 to integers truncates toward zero and saturates; NaN becomes 0. To bool, every value but
zero is true (NaN too). The order of axes in memory is the planner's, so ``dim_order`` and
``memory_format`` say nothing.
"""


def _declare(name: str, reference: Callable[..., Array]) -> None:
    reference.__doc__ = _ABOUT
    op(
        name,
        out=AnyTensor[Array, "..."],
        kernels=_kernels(),
        shape=_same_shape,
        exact=True,
    )(reference)


def _to_dim_order_copy(
    x: AnyTensor[Array, "..."],
    dtype: None = None,
    layout: None = None,
    device: None = None,
    pin_memory: None = None,
    non_blocking: None = None,
    dim_order: None = None,
    *,
    out_dtype: str | None = None,
) -> Array:
    return _cast(x, out_dtype)


def _to_copy_out(
    x: AnyTensor[Array, "..."],
    non_blocking: None = None,
    dim_order: None = None,
    *,
    out_dtype: str | None = None,
) -> Array:
    return _cast(x, out_dtype)


def _to_copy_into(
    x: AnyTensor[Array, "..."],
    non_blocking: None = None,
    memory_format: None = None,
    *,
    out_dtype: str | None = None,
) -> Array:
    return _cast(x, out_dtype)


def _to_copy(
    x: AnyTensor[Array, "..."],
    dtype: None = None,
    layout: None = None,
    device: None = None,
    pin_memory: None = None,
    non_blocking: None = None,
    memory_format: None = None,
    *,
    out_dtype: str | None = None,
) -> Array:
    return _cast(x, out_dtype)


_declare("dim_order_ops._to_dim_order_copy.default", _to_dim_order_copy)
_declare("dim_order_ops._to_dim_order_copy.out", _to_copy_out)
_declare("aten._to_copy.default", _to_copy)
_declare("aten._to_copy.out", _to_copy_into)
