"""Kernels of elementwise functions whose operands or results may be bytes: a truth value each."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from nybble.contract import Kernel, Param, u32
from nybble.ops.strided import MOST_AXES, axis_params

__all__ = ["map_kernels", "truth"]


def truth(condition: str) -> str:
    """WGSL of four truth values as 0 or 1, for a result of bytes."""
    return f"select(vec4<u32>(), vec4<u32>(1u), {condition})"


def map_kernels(
    value: str,
    operands: Collection[str],
    *,
    as_bytes: Collection[str] = (),
    params: Mapping[str, Param] | None = None,
    when: str = "True",
) -> list[Kernel]:
    """A flat kernel for equal shapes and, of several operands, one for any broadcast.

    ``value`` is WGSL in ``NAME_4`` for each operand: vectors of four elements, ``vec4<u32>`` for
    those ``as_bytes`` (``out`` among them for a result of bytes). The operator derives ``axes``.
    """
    words = [name for name in (*operands, "out") if name not in as_bytes]
    fields = {"words": u32("cdiv(count, 4)"), **(params or {})}
    text = {
        "VALUE": repr(value),
        "OPERANDS": repr(" ".join(operands)),
        "BYTES": repr(" ".join(as_bytes)),
    }
    equal = " and ".join(f"numel({name}) == count" for name in operands)
    flat = Kernel(
        "map_flat.wgsl",
        grid=("cdiv(words, THREADS)",),
        params=fields,
        constants={"THREADS": 256, **text},
        vectors=dict.fromkeys(words, 4),
        when=f"({when}) and {equal}",
    )
    return [flat] if len(operands) == 1 else [flat, _broadcast(operands, words, fields, text, when)]


def _broadcast(
    operands: Collection[str], words: Collection[str], fields: Mapping[str, Param],
    text: Mapping[str, str], when: str,
) -> Kernel:  # fmt: skip
    quad = "'vec4<u32>'"
    typed = [name for name in words if name != "out"]
    if typed:
        quad = f"'vec4<f32>' if {typed[0]}_dtype == 'float32' else 'vec4<i32>'"
    return Kernel(
        "map_broadcast.wgsl",
        grid=("cdiv(words, THREADS)",),
        params={
            **fields,
            "elements": u32("count"),
            **axis_params("axes", "size", [f"{name}_stride" for name in operands]),
        },
        constants={"THREADS": 64, "AXES": "len(axes)", "QUAD": quad, **text},
        vectors={"out": 4} if "out" in words else {},
        when=f"({when}) and len(axes) <= {MOST_AXES}",
    )
