"""Tensors joined along an axis, as many as a kernel may bind at a time."""

from typing import Any

import numpy as np

from nybble.contract import AnyTensor, Array, Emit, Kernel, expansion, op, rule, u32

__all__ = ["MOST_TENSORS", "cat", "concat"]

Shape = tuple[int, ...]
MOST_TENSORS = 7
"""A kernel may bind eight buffers: seven tensors and the result."""
_NAMES = [f"x_{i}" for i in range(MOST_TENSORS)]


def _row(name: str) -> str:
    """Elements of a tensor from the joined axis on."""
    return f"0 if {name} is None else prod({name}[dim % len({name}):])"


def _rules() -> list[Any]:
    result = [rule("-len(x_0) <= dim < len(x_0)", "the axis must be one of the tensors'")]
    for name in _NAMES[1:]:
        sizes = (
            f"len({name}) == len(x_0) and {name}[:dim % len(x_0)] == x_0[:dim % len(x_0)]"
            f" and {name}[dim % len(x_0) + 1:] == x_0[dim % len(x_0) + 1:]"
        )
        result.append(
            rule(f"{name} is None or ({name}_dtype == x_0_dtype and {sizes})",
                 "joined tensors must have one element type, and one shape but for the axis")
        )  # fmt: skip
    return result


def _kernels() -> list[Kernel]:
    words = "x_0_dtype in ('float32', 'int32')"
    return [
        Kernel(
            "concat.wgsl",
            grid=(f"cdiv(elements, THREADS * {4 if narrow else 1})",),
            params={
                "elements": u32("count"),
                "whole": u32(" + ".join(f"({_row(name)})" for name in _NAMES)),
                **{f"row_{i}": u32(_row(name)) for i, name in enumerate(_NAMES)},
            },
            constants={
                "THREADS": 64,
                "NARROW": narrow,
                "SCALAR": "'f32' if x_0_dtype == 'float32' else 'i32'",
            },
            when=f"({words}) != {narrow}",
        )
        for narrow in (False, True)
    ]


def _joined_shape(x_0: Shape, dim: int, **others: Any) -> Shape:
    at = dim % len(x_0)
    whole = x_0[at] + sum(shape[at] for shape in others.values() if shape is not None)
    return (*x_0[:at], whole, *x_0[at + 1 :])


@op(
    "nybble.concat.default",
    out=AnyTensor[Array, "..."],
    rules=_rules(),
    kernels=_kernels(),
    operations="0",
    shape=_joined_shape,
    exact=True,
)
def concat(
    x_0: AnyTensor[Array, "..."],
    x_1: AnyTensor[Array, "..."] | None = None,
    x_2: AnyTensor[Array, "..."] | None = None,
    x_3: AnyTensor[Array, "..."] | None = None,
    x_4: AnyTensor[Array, "..."] | None = None,
    x_5: AnyTensor[Array, "..."] | None = None,
    x_6: AnyTensor[Array, "..."] | None = None,
    dim: int = 0,
) -> Array:
    """Up to seven tensors one after another along the axis ``dim``."""
    given = [x for x in (x_0, x_1, x_2, x_3, x_4, x_5, x_6) if x is not None]
    return np.concatenate(given, axis=dim)


@expansion("aten.cat.default", out_variants=["aten.cat.out"])
def cat(emit: Emit, tensors: Any, dim: int) -> Any:
    """Tensors one after another along the axis ``dim``; empty ones of one axis are passed over."""
    if not tensors:
        raise ValueError("there is no tensor to join")
    parts = [t for t in tensors if tuple(t.shape) != (0,)] or list(tensors[:1])
    if len(parts) == 1:
        return emit("aten.clone.default", x=parts[0])
    while len(parts) > 1:
        groups = [parts[i : i + MOST_TENSORS] for i in range(0, len(parts), MOST_TENSORS)]
        parts = [
            group[0]
            if len(group) == 1
            else emit("nybble.concat.default", dim=dim, **dict(zip(_NAMES, group, strict=False)))
            for group in groups
        ]
    return parts[0]
