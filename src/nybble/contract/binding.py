"""Binds actual arguments to a declared operator: by name, checked, with the axes they bind."""

from __future__ import annotations

import math
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from nybble.errors import ContractError

from .annotations import TensorAnnotation
from .dtypes import DTYPES, DType
from .operator import Argument, Operator, Shape, literal_values

__all__ = ["BoundCall", "TensorLike", "TensorType", "bind", "bind_serialized"]


class TensorLike(Protocol):
    """Anything with an element type and a shape."""

    @property
    def dtype(self) -> DType:
        """Element type."""
        ...

    @property
    def shape(self) -> Shape:
        """Extent of each axis."""
        ...


@dataclass(frozen=True)
class TensorType:
    """Element type and shape."""

    dtype: DType
    shape: Shape

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, eq=False)
class BoundCall:
    """Arguments by name, the names they bind, and the types of the results.

    ``names`` holds axes, derived axes, attributes, each tensor's shape under its own name and
    its element type under ``NAME_dtype`` (None for an absent optional tensor): what an
    operator's expressions read.
    """

    operator: Operator
    arguments: Mapping[str, Any]
    names: Mapping[str, Any]
    outputs: tuple[TensorType, ...]

    @cached_property
    def tensors(self) -> dict[str, Any]:
        """The tensor arguments that are present, by name, in declared order."""
        return {
            a.name: self.arguments[a.name]
            for a in self.operator.arguments
            if a.is_tensor and self.arguments[a.name] is not None
        }

    @property
    def attributes(self) -> dict[str, Any]:
        """The arguments that are no tensors, by name."""
        return {a.name: self.arguments[a.name] for a in self.operator.arguments if not a.is_tensor}


def bind_serialized(operator: Operator, values: Sequence[Any]) -> dict[str, Any]:
    """Names for positional arguments as a program stores them, outputs not included.

    Raises:
        ContractError: the count differs from the declaration's.
    """
    expected = operator.serialized
    if len(values) != len(expected):
        names = ", ".join(a.name for a in expected)
        raise ContractError(
            f"{operator.name}: received {len(values)} arguments, "
            f"expected {len(expected)} ({names}); the program was made for another version"
        )
    return {a.name: v for a, v in zip(expected, values, strict=True)}


def bind(
    operator: Operator,
    arguments: Mapping[str, Any],
    declared_outputs: Sequence[TensorLike] | None = None,
) -> BoundCall:
    """Check ``arguments`` against the contract and bind its axes.

    Args:
        operator: the declaration.
        arguments: tensors (:class:`TensorLike`) and attributes by name; absent ones take their
            defaults.
        declared_outputs: result types that a program states; they must equal the derived ones.

    Raises:
        ContractError: a wrong type, rank, size or value; the message names the argument, its
            declaration, what came, and the axes bound so far.
    """
    binder = _Binder(operator)
    binder.refuse_unknown(arguments)
    for argument in operator.arguments:
        binder.add(argument, arguments.get(argument.name, argument.given_default))
    binder.derive()
    outputs = binder.outputs()
    if declared_outputs is not None:
        binder.compare_outputs(outputs, declared_outputs)
    return BoundCall(operator, binder.values, binder.names, outputs)


class _Binder:
    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.values: dict[str, Any] = {}
        self.axes: dict[str, Any] = {}
        self.names: dict[str, Any] = {}
        self.later: list[tuple[str, str, int]] = []

    def fail(self, name: str, problem: str, declared: object, received: object) -> ContractError:
        bound = " ".join(f"{k}={v}" for k, v in self.axes.items()) or "nothing yet"
        return ContractError(
            f"{self.operator.name}: {name} {problem}\n"
            f"  declared  {declared}\n  received  {received}\n  bound     {bound}"
        )

    def refuse_unknown(self, arguments: Mapping[str, Any]) -> None:
        known = [a.name for a in self.operator.arguments]
        unknown = [name for name in arguments if name not in known]
        if unknown:
            raise ContractError(
                f"{self.operator.name}: it has no argument {', '.join(map(repr, unknown))}; "
                f"its arguments are {', '.join(known)}"
            )

    def add(self, argument: Argument, value: Any) -> None:
        if argument.ignored:
            value = None
        elif argument.is_tensor:
            self.add_tensor(argument, value)
            self.names[argument.name] = None if value is None else tuple(value.shape)
            self.names[f"{argument.name}_dtype"] = None if value is None else value.dtype.name
        else:
            value = self.attribute(argument, value)
            self.names[argument.name] = value
        self.values[argument.name] = value

    def add_tensor(self, argument: Argument, value: Any) -> None:
        label = f"argument '{argument.name}'"
        if value is None:
            if not argument.optional:
                raise self.fail(label, "is missing", argument, "None")
            return
        if not hasattr(value, "shape") or not hasattr(value, "dtype"):
            raise self.fail(label, "is not a tensor", argument, repr(value))
        spec: TensorAnnotation = argument.type
        received = TensorType(value.dtype, tuple(value.shape))
        if value.dtype.name not in spec.dtypes:
            raise self.fail(label, "has another element type", argument, received)
        self.bind_axes(label, spec, received)

    def bind_axes(self, label: str, spec: TensorAnnotation, received: TensorType) -> None:
        tokens, shape = spec.axes.split(), received.shape
        if spec.axes == "...":
            return
        many = next((i for i, token in enumerate(tokens) if token.startswith("*")), None)
        if many is not None:
            end = many + len(shape) - (len(tokens) - 1)
            if end < many:
                raise self.fail(label, "has too few axes", spec, received)
            self.unify(label, spec, received, tokens[many][1:], shape[many:end])
            del tokens[many]
            shape = shape[:many] + shape[end:]
        if len(tokens) != len(shape):
            raise self.fail(label, f"has rank {len(received.shape)}", spec, received)
        for token, size in zip(tokens, shape, strict=True):
            if token.isdigit():
                if int(token) != size:
                    raise self.fail(label, f"has size {size} where {token} is due", spec, received)
            else:
                self.unify(label, spec, received, token, size)

    def unify(
        self, label: str, spec: TensorAnnotation, received: TensorType, axis: str, size: Any
    ) -> None:
        bound = self.axes.setdefault(axis, size)
        if bound != size:
            raise self.fail(
                label, f"has {axis}={size}, but {axis} is {bound} already", spec, received
            )
        self.names[axis] = size

    def attribute(self, argument: Argument, value: Any) -> Any:
        label = f"argument '{argument.name}'"
        if value is None:
            if argument.optional:
                return None
            raise self.fail(label, "is missing", argument, "None")
        allowed = literal_values(argument.type)
        if allowed is not None:
            if value not in allowed:
                raise self.fail(label, "has an unknown value", argument, repr(value))
            return value
        converted = _convert(argument.type, value)
        if converted is None:
            raise self.fail(label, "has another type", argument, repr(value))
        return converted

    def derive(self) -> None:
        for name, expression in self.operator.derived.items():
            self.names[name] = self.axes[name] = self.evaluate(expression.evaluate)
        for item in self.operator.rules:
            if not self.evaluate(item.condition.evaluate):
                read = ", ".join(f"{n}={self.names[n]}" for n in sorted(item.condition.names))
                raise ContractError(
                    f"{self.operator.name}: {item.because}\n"
                    f"  declared  {item.condition}\n  received  {read}"
                )

    def evaluate(self, function: Any) -> Any:
        try:
            return function(self.names)
        except (ArithmeticError, IndexError, TypeError, ValueError) as error:
            raise ContractError(
                f"{self.operator.name}: its arguments do not fit: {error}"
            ) from None

    def outputs(self) -> tuple[TensorType, ...]:
        result = []
        for output in self.operator.outputs:
            shape = self.output_shape(output.name, output.type)
            if any(size < 0 for size in shape):
                raise ContractError(
                    f"{self.operator.name}: the result '{output.name}' would have shape "
                    f"{list(shape)}; the input is too small for these attributes"
                )
            dtype = self.output_dtype(output.type)
            self.names[output.name] = shape
            result.append(TensorType(dtype, shape))
        self.names["count"] = _numel(result[0].shape)
        return tuple(result)

    def output_shape(self, name: str, spec: TensorAnnotation) -> Shape:
        if spec.axes == "...":
            if self.operator.shape is None:
                raise ValueError(f"{self.operator.name}: result '{name}' has no shape rule")
            arguments = {a.name: self.names.get(a.name) for a in self.operator.arguments}
            return tuple(self.evaluate(lambda names: self.operator.shape(**arguments)))
        shape: list[int] = []
        for token in spec.axes.split():
            if token.startswith("*"):
                shape.extend(self.names[token[1:]])
            else:
                shape.append(int(token) if token.isdigit() else int(self.names[token]))
        return tuple(shape)

    def output_dtype(self, spec: TensorAnnotation) -> DType:
        if len(spec.dtypes) == 1:
            return DTYPES[spec.dtypes[0]]
        if self.values.get("out_dtype") is not None:
            return DTYPES[self.values["out_dtype"]]
        # That of the first argument declared alike: not of a condition, nor of indices.
        present = self.tensor_values()
        alike = [v for n, v in present if self.operator.argument(n).type.dtypes == spec.dtypes]
        for value in (*alike, *(v for _, v in present)):
            dtype: DType = value.dtype
            return dtype
        return DTYPES[spec.dtypes[0]]

    def tensor_values(self) -> list[tuple[str, Any]]:
        return [
            (a.name, self.values[a.name])
            for a in self.operator.arguments
            if a.is_tensor and self.values[a.name] is not None
        ]

    def compare_outputs(
        self, derived: Sequence[TensorType], declared: Sequence[TensorLike]
    ) -> None:
        if len(derived) != len(declared):
            raise ContractError(
                f"{self.operator.name}: the program stores {len(declared)} results, "
                f"the operator has {len(derived)}"
            )
        for output, mine, theirs in zip(self.operator.outputs, derived, declared, strict=True):
            stated = TensorType(theirs.dtype, tuple(theirs.shape))
            if stated != mine:
                raise self.fail(
                    f"result '{output.name}'", "differs from the program's", mine, stated
                )


def _numel(shape: Shape) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _convert(annotation: Any, value: Any) -> Any:
    """``value`` as the declared Python type, None where it does not fit.

    Programs share scalars by equality, so 1, 1.0 and (for flags) 0/1 stand for one another.
    """
    if annotation is float and isinstance(value, (int, float)):
        return float(value)
    if annotation is int and isinstance(value, (int, float)):
        return int(value) if math.isfinite(value) and value == int(value) else None
    if annotation is bool and isinstance(value, (bool, int)) and value in (0, 1):
        return bool(value)
    if annotation is str and isinstance(value, str):
        return value
    if typing.get_origin(annotation) is tuple and isinstance(value, (tuple, list)):
        item = typing.get_args(annotation)[0]
        items = tuple(_convert(item, v) for v in value)
        return None if any(v is None for v in items) else items
    return None
