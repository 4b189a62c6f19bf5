"""Tensors of one value, and of evenly spaced values; passes fold all but the largest at load."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from nybble.contract import AnyTensor, Array, Kernel, Param, f32, i32, op, rule, u32

__all__: list[str] = []

Shape = tuple[int, ...]
_SINGLE = "{0} if abs({0}) < 2.0**128 else {0} * float('inf')"


_FITS = rule(
    "out_dtype in (None, 'float32', 'bool') or (value == int(value) and -2**31 <= value < 2**31)",
    "integers are filled with an int32",
)


def _kernels(value: str, like: bool) -> list[Kernel]:
    """A kernel for each form of the result; ``value`` is an expression over the call's names."""
    dtype = f"(out_dtype if out_dtype is not None else {'x_dtype' if like else repr('float32')})"

    def kernel(dtypes: str, items: str, param: Param) -> Kernel:
        return Kernel(
            "fill.wgsl",
            grid=("cdiv(items, THREADS)",),
            params={"items": u32(items), "value": param},
            constants={"THREADS": 256, "VALUE": "'params.value'"},
            unused=frozenset({"x"} if like else ()),
            when=f"{dtype} in {dtypes}",
        )

    return [
        kernel("('float32',)", "count", f32(_SINGLE.format(value))),
        kernel("('int32',)", "count", i32(f"int({value})")),
        kernel("('int8', 'uint8')", "cdiv(count, 4)", u32(f"int({value}) % 256 * 0x01010101")),
        kernel("('bool',)", "cdiv(count, 4)", u32(f"0 if {value} == 0 else 0x01010101")),
    ]


def _filled(shape: Shape, value: float, out_dtype: str | None) -> Array:
    target = np.dtype(out_dtype or "float32")
    with np.errstate(over="ignore"):
        return np.full(shape, bool(value) if target == np.bool_ else value, target)


def _shape(size: Shape = (), x: Shape | None = None, **_: Any) -> Shape:
    return size if x is None else x


def _declare(
    name: str, reference: Callable[..., Array], about: str, *, value: str, like: bool = False
) -> None:
    reference.__doc__ = f"{about}; its element type is the program's."
    op(
        name,
        out=AnyTensor[Array, "..."],
        rules=[_FITS] if value == "value" else [],
        kernels=_kernels(value, like),
        operations="0",
        shape=_shape,
        exact=True,
    )(reference)


def _declare_sized(name: str, number: int) -> None:
    """``ones`` or ``zeros``, in their two stored forms."""

    def plain(
        size: tuple[int, ...],
        dtype: None = None,
        layout: None = None,
        device: None = None,
        pin_memory: None = None,
        *,
        out_dtype: str | None = None,
    ) -> Array:
        return _filled(size, number, out_dtype)

    def into(size: tuple[int, ...], *, out_dtype: str | None = None) -> Array:
        return _filled(size, number, out_dtype)

    _declare(f"aten.{name}.default", plain, f"A tensor of {name}", value=str(number))
    _declare(f"aten.{name}.out", into, f"A tensor of {name}", value=str(number))


def _declare_like(name: str, number: int) -> None:
    """``ones_like`` or ``zeros_like``, in their two stored forms."""

    def plain(
        x: AnyTensor[Array, "..."],
        dtype: None = None,
        layout: None = None,
        device: None = None,
        pin_memory: None = None,
        memory_format: None = None,
        *,
        out_dtype: str | None = None,
    ) -> Array:
        return _filled(x.shape, number, out_dtype or str(x.dtype))

    def into(
        x: AnyTensor[Array, "..."], memory_format: None = None, *, out_dtype: str | None = None
    ) -> Array:
        return _filled(x.shape, number, out_dtype or str(x.dtype))

    about = f"A tensor of x's shape, of {name}"
    _declare(f"aten.{name}_like.default", plain, about, value=str(number), like=True)
    _declare(f"aten.{name}_like.out", into, about, value=str(number), like=True)


for _name, _number in [("ones", 1), ("zeros", 0)]:
    _declare_sized(_name, _number)
    _declare_like(_name, _number)


def _full(
    size: tuple[int, ...],
    value: float,
    dtype: None = None,
    layout: None = None,
    device: None = None,
    pin_memory: None = None,
    *,
    out_dtype: str | None = None,
) -> Array:
    return _filled(size, value, out_dtype)


def _full_out(size: tuple[int, ...], value: float, *, out_dtype: str | None = None) -> Array:
    return _filled(size, value, out_dtype)


def _full_like(
    x: AnyTensor[Array, "..."],
    value: float,
    dtype: None = None,
    layout: None = None,
    device: None = None,
    pin_memory: None = None,
    memory_format: None = None,
    *,
    out_dtype: str | None = None,
) -> Array:
    return _filled(x.shape, value, out_dtype or str(x.dtype))


def _full_like_out(
    x: AnyTensor[Array, "..."],
    value: float,
    memory_format: None = None,
    *,
    out_dtype: str | None = None,
) -> Array:
    return _filled(x.shape, value, out_dtype or str(x.dtype))


def _scalar_tensor(
    value: float,
    dtype: None = None,
    layout: None = None,
    device: None = None,
    pin_memory: None = None,
    *,
    out_dtype: str | None = None,
) -> Array:
    return _filled((), value, out_dtype)


def _scalar_tensor_out(value: float, *, out_dtype: str | None = None) -> Array:
    return _filled((), value, out_dtype)


_declare("aten.full.default", _full, "A tensor of one value", value="value")
_declare("aten.full.out", _full_out, "A tensor of one value", value="value")
_declare("aten.full_like.default", _full_like, "A tensor of x's shape and one value",
         value="value", like=True)  # fmt: skip
_declare("aten.full_like.out", _full_like_out, "A tensor of x's shape and one value",
         value="value", like=True)  # fmt: skip
_declare("aten.scalar_tensor.default", _scalar_tensor, "A number without axes", value="value")
_declare("aten.scalar_tensor.out", _scalar_tensor_out, "A number without axes", value="value")


def _range_shape(start: float, end: float, step: float, **_: Any) -> Shape:
    return (max(0, math.ceil((end - start) / step)),)


def _range(start: float, end: float, step: float, out_dtype: str | None) -> Array:
    places = np.arange(_range_shape(start, end, step)[0])
    return np.asarray((start + places * step), np.dtype(out_dtype or "float32"))


def _arange(
    start: float,
    end: float,
    step: float = 1.0,
    dtype: None = None,
    layout: None = None,
    device: None = None,
    pin_memory: None = None,
    *,
    out_dtype: str | None = None,
) -> Array:
    return _range(start, end, step, out_dtype)


def _arange_out(
    start: float, end: float, step: float = 1.0, *, out_dtype: str | None = None
) -> Array:
    return _range(start, end, step, out_dtype)


def _declare_range(name: str, reference: Callable[..., Array]) -> None:
    reference.__doc__ = "start, start + step, ... below end; its element type is the program's."
    op(
        name,
        out=AnyTensor[Array, "..."],
        rules=[
            rule("step != 0", "the step must not be 0"),
            rule("(end - start) * step >= 0", "the step must lead from start to end"),
            rule("out_dtype in (None, 'float32') or (start == int(start) and step == int(step)"
                 " and max(abs(start), abs(end)) < 2**31)",
                 "the bounds of integers must be int32"),
        ],
        kernels=[
            Kernel(
                "fill.wgsl",
                grid=("cdiv(items, THREADS)",),
                params={"items": u32("count"), "start": kind("start"), "step": kind("step")},
                constants={"THREADS": 256, "VALUE": f"'params.start + {cast}(item) * params.step'"},
                when=condition,
            )
            for kind, cast, condition in [
                (f32, "f32", "out_dtype in (None, 'float32')"),
                (lambda name: i32(f"int({name})"), "i32", "out_dtype == 'int32'"),
            ]
        ],
        operations="0",
        shape=_range_shape,
    )(reference)  # fmt: skip


_declare_range("aten.arange.start_step", _arange)
_declare_range("aten.arange.start_out", _arange_out)
