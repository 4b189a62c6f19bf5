"""Contract -> WGSL: the only writer of bindings, ``struct Params`` and constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2

from .binding import BoundCall
from .dtypes import DType
from .kernel import Kernel
from .layouts import ROW_MAJOR

__all__ = ["AUTOMATIC_PARAMS", "BoundTensor", "bound_tensors", "constants_of", "emit_wgsl"]

AUTOMATIC_PARAMS = ("zero", "grid_width")
"""``u32`` fields that begin every uniform record: a run-time zero, and the folded grid's width."""

OPS_FOLDER = Path(__file__).resolve().parent.parent / "ops"


@dataclass(frozen=True)
class BoundTensor:
    """A tensor that a kernel binds: its name, element type, and whether the kernel writes it."""

    name: str
    dtype: DType
    writable: bool


def bound_tensors(kernel: Kernel, call: BoundCall) -> tuple[BoundTensor, ...]:
    """The storage bindings of a kernel for one call: those it reads, then those it writes."""
    overwritten = set(kernel.in_place.values())
    inputs = [
        BoundTensor(name, value.dtype, name in overwritten)
        for name, value in call.tensors.items()
        if name not in kernel.unused
    ]
    results = [
        BoundTensor(output.name, type_.dtype, True)
        for output, type_ in zip(call.operator.outputs, call.outputs, strict=True)
        if output.name not in kernel.unused and output.name not in kernel.in_place
    ]
    return tuple(sorted([*inputs, *results], key=lambda tensor: tensor.writable))


def constants_of(kernel: Kernel, names: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a kernel's constants; a constant may read those declared before it."""
    scope = dict(names)
    for name, expression in kernel.fixed.items():
        scope[name] = expression.evaluate(scope)
    return {name: scope[name] for name in kernel.fixed}


def emit_wgsl(
    kernel: Kernel, call: BoundCall, constants: Mapping[str, Any], *, packed_dot: bool = True
) -> str:
    """The whole shader: header derived from the contract, then the family's body.

    ``packed_dot`` tells the body whether the compiler knows ``dot4I8Packed``.
    """
    body = _environment().get_template(f"{call.operator.family}/{kernel.shader}")
    present = frozenset(call.tensors)
    absent = [
        a.name
        for a in call.operator.arguments
        if a.is_tensor and a.name not in present and a.name not in kernel.unused
    ]
    lines = [f"// {call.operator.name}: {kernel.shader}"]
    tensors = bound_tensors(kernel, call)
    lines += [_binding(i, t, kernel) for i, t in enumerate(tensors)]
    lines += _params(kernel, len(tensors))
    lines += [
        f"const {name} = {_literal(value)};"
        for name, value in constants.items()
        if not isinstance(value, str)
    ]
    text = body.render(**constants, present=present, absent=absent, packed_dot=packed_dot)
    return "\n".join(lines) + "\n" + text


def element_type(tensor: BoundTensor, kernel: Kernel) -> str:
    """The WGSL element of a binding: a scalar, a packed word, or a vector of them."""
    layout = kernel.layouts.get(tensor.name, ROW_MAJOR)
    scalar = tensor.dtype.wgsl or "u32"
    if layout is not ROW_MAJOR and tensor.dtype.itemsize < 4:
        scalar = "u32"
    width = kernel.vectors.get(tensor.name, 1)
    return scalar if width == 1 else f"vec{width}<{scalar}>"


def _binding(index: int, tensor: BoundTensor, kernel: Kernel) -> str:
    access = "read_write" if tensor.writable else "read"
    return (
        f"@group(0) @binding({index}) var<storage, {access}> {tensor.name}: "
        f"array<{element_type(tensor, kernel)}>;"
    )


def _params(kernel: Kernel, index: int) -> list[str]:
    fields = [f"  {name}: u32," for name in AUTOMATIC_PARAMS]
    fields += [f"  {name}: {param.type}," for name, param in kernel.params.items()]
    padding = -len(fields) % 4
    fields += [f"  padding_{i}: u32," for i in range(padding)]
    return [
        "struct Params {",
        *fields,
        "};",
        f"@group(0) @binding({index}) var<uniform> params: Params;",
        "fn linear_group(group: vec3<u32>) -> u32 {",
        "  return group.x + group.y * params.grid_width;",
        "}",
    ]


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value}u" if value >= 0 else f"{value}i"
    return f"{float(value)!r}f"


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    """Strict templates: a misspelt name is an error. ``$`` delimiters keep the body WGSL."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(OPS_FOLDER),
        undefined=jinja2.StrictUndefined,
        variable_start_string="{$",
        variable_end_string="$}",
        line_statement_prefix="$$",
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
        keep_trailing_newline=True,
    )
