"""The declaration of an operator: its numpy reference's signature is the contract.

Argument names, element types, axes, attributes, defaults and documentation are written there and
nowhere else. From it come the binding of serialized arguments by name, the checks, the output
shapes, the shader header, the uniform record, the support table and the conformance cases.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .annotations import TensorAnnotation
from .expressions import Expression
from .kernel import DEVICE_FACTS, AnyKernel, Composite, Kernel

__all__ = ["REGISTRY", "Argument", "Operator", "Output", "Rule", "op", "rule"]

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Rule:
    """A condition that every call must meet; ``because`` completes the error's sentence."""

    condition: Expression
    because: str

    def __repr__(self) -> str:
        return f"<{self.condition}: {self.because}>"


def rule(condition: str, because: str) -> Rule:
    """A rule of an operator's contract."""
    return Rule(Expression(condition), because)


@dataclass(frozen=True)
class Argument:
    """One argument: a tensor annotation, or the Python type of an attribute.

    ``ignored`` arguments hold a place in the serialized list only. ``internal`` ones (keyword-only
    in the signature) are never serialized: passes set them.
    """

    name: str
    type: Any
    optional: bool
    default: Any
    ignored: bool
    internal: bool

    @property
    def is_tensor(self) -> bool:
        """Whether the argument is a tensor, and not an attribute."""
        return isinstance(self.type, TensorAnnotation)

    @property
    def given_default(self) -> Any:
        """The default, None where the signature has none: a missing argument."""
        return None if self.default is inspect.Parameter.empty else self.default

    def __str__(self) -> str:
        if self.is_tensor:
            return str(self.type)
        name = getattr(self.type, "__name__", None) or str(self.type).replace("typing.", "")
        if typing.get_origin(self.type) is not None:
            name = str(self.type).replace("typing.", "")
        return name + (" or None" if self.optional else "")


@dataclass(frozen=True)
class Output:
    """One result: its annotation, and its shape when axes alone cannot say it."""

    name: str
    type: TensorAnnotation


@dataclass(frozen=True, eq=False)
class Operator:
    """A declared operator. See :func:`op`."""

    name: str
    reference: Callable[..., Any]
    arguments: tuple[Argument, ...]
    outputs: tuple[Output, ...]
    derived: Mapping[str, Expression]
    rules: tuple[Rule, ...]
    kernels: tuple[AnyKernel, ...]
    out_variants: tuple[str, ...]
    operations: Expression
    shape: Callable[..., Shape] | None
    family: str
    exact: bool
    mutates: Mapping[str, str]
    documentation: str = field(repr=False)

    @property
    def stored_outputs(self) -> tuple[Output, ...]:
        """The results that a program stores: all but the new content of arguments."""
        return tuple(o for o in self.outputs if o.name not in self.mutates)

    @property
    def serialized(self) -> tuple[Argument, ...]:
        """The arguments that a program stores, in its order."""
        return tuple(a for a in self.arguments if not a.internal)

    def argument(self, name: str) -> Argument:
        """The argument called ``name``."""
        return next(a for a in self.arguments if a.name == name)

    def __str__(self) -> str:
        return self.name

    def names(self) -> tuple[str, ...]:
        """Every name that an expression of this operator may read."""
        axes = {
            token.lstrip("*")
            for spec in (*(a.type for a in self.arguments if a.is_tensor), *self._output_types())
            for token in spec.axes.split()
            if token.lstrip("*").isidentifier()
        }
        tensors = {a.name for a in self.arguments} | {o.name for o in self.outputs}
        dtypes = {f"{a.name}_dtype" for a in self.arguments if a.is_tensor}
        words = {f"{name}_words" for name in tensors}
        return tuple(sorted(axes | tensors | dtypes | words | set(self.derived) | {"count"}))

    def _output_types(self) -> tuple[TensorAnnotation, ...]:
        return tuple(o.type for o in self.outputs)


REGISTRY: dict[str, Operator] = {}
"""Every declared operator by serialized name, out-variants included."""


def op(
    name: str,
    *,
    out: Any,
    derived: Mapping[str, str] | None = None,
    rules: Sequence[Rule] = (),
    kernels: Sequence[AnyKernel] = (),
    out_variants: Sequence[str] = (),
    operations: str = "numel(out)",
    shape: Callable[..., Shape] | None = None,
    exact: bool = False,
    mutates: Mapping[str, str] | None = None,
) -> Callable[[Callable[..., Any]], Operator]:
    """Declare an operator by its numpy reference.

    Args:
        name: as serialized, such as ``et_vk.q8ta_relu.default``.
        out: annotation of the result, or a mapping of names to annotations for several results.
        derived: axes computed from others, as expressions, in order.
        rules: conditions on axes and attributes.
        kernels: in order of preference; the first that applies and fits the device is taken.
        out_variants: names of the same operator as a kernel call outside a delegate.
        operations: arithmetic operations of one call, for profiles.
        shape: result's shape from the bound arguments, where axes cannot say it. Called with the
            reference's arguments, tensors replaced by their shapes.
        mutates: results that a program does not store, because they are the new content of an
            argument: result name to argument name.
        exact: results must equal the reference's bit for bit; else the dtype's tolerance holds.

    Raises:
        ValueError: the declaration is inconsistent: an unknown name in an expression, a name
            declared twice.
    """

    def declare(reference: Callable[..., Any]) -> Operator:
        outputs = out if isinstance(out, dict) else {"out": out}
        operator = Operator(
            name=name,
            reference=reference,
            arguments=_arguments(reference),
            outputs=tuple(Output(key, value) for key, value in outputs.items()),
            derived={key: Expression(text) for key, text in (derived or {}).items()},
            rules=tuple(rules),
            kernels=tuple(kernels),
            out_variants=tuple(out_variants),
            operations=Expression(operations),
            shape=shape,
            family=reference.__module__.split(".")[2],
            exact=exact,
            mutates=dict(mutates or {}),
            documentation=inspect.cleandoc(reference.__doc__ or ""),
        )
        _check_declaration(operator)
        _register(operator)
        return operator

    return declare


def _register(operator: Operator) -> None:
    for key in (operator.name, *operator.out_variants):
        if key in REGISTRY:
            raise ValueError(f"operator {key} is declared twice")
        REGISTRY[key] = operator


def _arguments(reference: Callable[..., Any]) -> tuple[Argument, ...]:
    signature = inspect.signature(reference, eval_str=True)
    return tuple(_argument(p) for p in signature.parameters.values())


def _argument(parameter: inspect.Parameter) -> Argument:
    annotation = parameter.annotation
    optional = False
    if isinstance(annotation, TensorAnnotation):
        optional = annotation.optional
    elif typing.get_origin(annotation) in (types.UnionType, typing.Union):
        members = [a for a in typing.get_args(annotation) if a is not type(None)]
        if len(members) != 1:
            raise ValueError(f"argument {parameter.name}: a union of several types")
        annotation, optional = members[0], True
    return Argument(
        name=parameter.name,
        type=annotation,
        optional=optional or annotation is None,
        default=parameter.default,
        ignored=annotation is None,
        internal=parameter.kind is inspect.Parameter.KEYWORD_ONLY,
    )


def _check_declaration(operator: Operator) -> None:
    known = operator.names()
    _check_names(operator)
    for key, expression in operator.derived.items():
        expression.check(known, f"{operator.name}, derived axis {key}")
    operator.operations.check(known, f"{operator.name}, operations")
    for item in operator.rules:
        item.condition.check(known, f"{operator.name}, rule")
    for kernel in operator.kernels:
        _check_kernel(operator, kernel, known)


def _check_names(operator: Operator) -> None:
    """Arguments, results, axes and derived axes share one scope: no name may mean two things."""
    named = [*(a.name for a in operator.arguments), *(o.name for o in operator.outputs)]
    named += list(operator.derived)
    axes = {
        token.lstrip("*")
        for argument in operator.arguments
        if argument.is_tensor
        for token in argument.type.axes.split()
    }
    twice = {name for name in named if named.count(name) > 1} | axes.intersection(named)
    if twice:
        raise ValueError(f"{operator.name}: {', '.join(sorted(twice))} is declared twice")


def _check_kernel(operator: Operator, kernel: AnyKernel, known: Sequence[str]) -> None:
    where = f"{operator.name}, {getattr(kernel, 'shader', 'alias')}"
    tensors = {a.name for a in operator.arguments if a.is_tensor}
    tensors |= {o.name for o in operator.outputs}
    named = set(kernel.layouts)
    if isinstance(kernel, Kernel):
        named |= set(kernel.vectors) | set(kernel.unused)
        named |= set(kernel.in_place) | set(kernel.in_place.values())
        constants: list[str] = []
        for key, expression in kernel.fixed.items():
            expression.check([*known, *constants], f"{where}, constant {key}")
            constants.append(key)
        for key, param in kernel.params.items():
            param.value.check([*known, *constants], f"{where}, parameter {key}")
        for expression in kernel.groups:
            expression.check([*known, *constants, *kernel.params], f"{where}, grid")
        kernel.condition.check([*known, *constants, *DEVICE_FACTS], f"{where}, when")
    elif isinstance(kernel, Composite):
        kernel.condition.check([*known, *DEVICE_FACTS], f"{operator.name}, {kernel.name}, when")
    else:
        named.add(kernel.source)
        kernel.condition.check(known, f"{where}, when")
    if named - tensors:
        raise ValueError(f"{where}: {', '.join(sorted(named - tensors))} is no tensor of it")


def literal_values(annotation: Any) -> tuple[Any, ...] | None:
    """The values of a ``Literal`` annotation, None for any other type."""
    return typing.get_args(annotation) if typing.get_origin(annotation) is Literal else None
