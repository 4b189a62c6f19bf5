"""What a kernel is: a shader body and, as data, how it is bound, specialized and dispatched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from .expressions import Expression
from .layouts import Layout

__all__ = [
    "DEVICE_FACTS",
    "Alias",
    "AnyKernel",
    "Composite",
    "Kernel",
    "Param",
    "f32",
    "i32",
    "u32",
]

DEVICE_FACTS = (
    "software", "max_binding_words", "max_threads", "max_workgroup_bytes", "matrix_units",
    "subgroups",
)  # fmt: skip
"""Names of a device that a kernel's ``when`` may read, beside axes, attributes and constants."""


@dataclass(frozen=True)
class Param:
    """One field of a kernel's uniform record: a WGSL scalar and the expression that fills it."""

    type: Literal["u32", "i32", "f32"]
    value: Expression

    def __str__(self) -> str:
        return f"{self.type} = {self.value}"


def u32(value: str) -> Param:
    """A ``u32`` field."""
    return Param("u32", Expression(value))


def i32(value: str) -> Param:
    """An ``i32`` field."""
    return Param("i32", Expression(value))


def f32(value: str) -> Param:
    """An ``f32`` field."""
    return Param("f32", Expression(value))


def _frozen(mapping: Mapping[str, object]) -> Mapping[str, object]:
    return MappingProxyType(dict(mapping))


@dataclass(frozen=True, eq=False)
class Kernel:
    """A shader body of an operator's family and the facts that a planner needs to use it.

    Args:
        shader: file in the family's folder; body only, its header is emitted.
        grid: workgroups along x, y, z as expressions. One entry is a linear grid: it may exceed
            the device's limit a dimension and is folded; the body calls ``linear_group``.
        params: uniform fields; the header adds ``zero`` and ``grid_width``.
        constants: compile-time constants (integers as ``u32``), also visible to the template;
            an expression that yields text is a template variable only.
        layouts: layout by tensor name where it is not row-major.
        vectors: elements a binding holds as one ``vec`` (2 or 4), by tensor name.
        unused: tensors that the body does not read, and that are not bound.
        when: condition on axes, attributes, constants, tensor shapes and :data:`DEVICE_FACTS`.
        flexible: as good as its flexible siblings, which differ in layouts alone: the planner
            takes the one that needs the fewest conversions.
        in_place: results that are written over an argument, by name; the body reads and writes
            the argument's binding.
        precision: float16 where float results are only as close as float16's tolerance.
        split: a flat elementwise kernel in terms of ``count`` elements, which the planner may
            cut into several dispatches where a tensor exceeds the device's binding limit.
    """

    shader: str
    grid: tuple[str, ...]
    params: Mapping[str, Param] = field(default_factory=dict)
    constants: Mapping[str, int | float | bool | str] = field(default_factory=dict)
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    vectors: Mapping[str, int] = field(default_factory=dict)
    unused: frozenset[str] = frozenset()
    when: str = "True"
    precision: Literal["float32", "float16"] = "float32"
    split: bool = False
    flexible: bool = False
    in_place: Mapping[str, str] = field(default_factory=dict)
    condition: Expression = field(init=False, repr=False)
    groups: tuple[Expression, ...] = field(init=False, repr=False)
    fixed: Mapping[str, Expression] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "condition", Expression(self.when))
        put(self, "groups", tuple(Expression(text) for text in self.grid))
        fixed = {
            name: Expression(value if isinstance(value, str) else repr(value))
            for name, value in self.constants.items()
        }
        put(self, "fixed", _frozen(fixed))


@dataclass(frozen=True)
class Alias:
    """Takes a kernel's place where the output's words are the input's: nothing is dispatched."""

    source: str
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    when: str = "True"
    condition: Expression = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "condition", Expression(self.when))


@dataclass(frozen=True, eq=False)
class Composite:
    """Takes a kernel's place where several calls of other operators do better than one dispatch.

    Args:
        name: how reports call it.
        expand: takes ``emit(operator, **arguments)``, which appends a call and returns its result
            (a tuple of several), and the call's arguments by name; returns the result. Equal calls
            are made once a graph, so what several calls prepare alike is shared.
        when: condition on axes, attributes, tensor shapes and :data:`DEVICE_FACTS`.
        precision: as a kernel's.
    """

    name: str
    expand: Callable[..., Any]
    when: str = "True"
    precision: Literal["float32", "float16"] = "float32"
    layouts: Mapping[str, Layout] = field(default_factory=dict, init=False, repr=False)
    condition: Expression = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "condition", Expression(self.when))


AnyKernel = Kernel | Composite | Alias
"""What may run a call on a device."""
