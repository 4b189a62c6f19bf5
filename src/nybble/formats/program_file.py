"""What a program file says, as values: ids are checked, bytes are views of the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = [
    "DelegateCall",
    "DelegateFile",
    "DelegateGraph",
    "DelegateNode",
    "DelegateTensor",
    "DelegateValue",
    "Dynamism",
    "FileTensor",
    "FileTensorList",
    "FileValue",
    "FreeCall",
    "IndexList",
    "Instruction",
    "JumpFalseCall",
    "KernelCall",
    "MethodFile",
    "MoveCall",
    "ProgramFile",
    "SymbolicInt",
    "TensorKind",
    "ValueList",
]

Dynamism: TypeAlias = Literal["static", "bounded", "unbounded"]
TensorKind: TypeAlias = Literal["constant", "planned", "bound", "mutable", "external"]


@dataclass(frozen=True, slots=True)
class FileTensor:
    """A tensor of a method.

    ``shape`` holds upper bounds when ``dynamism`` is "bounded" and nothing of use when it is
    "unbounded"; ``dim_order`` lists the dimensions from outermost to innermost. ``data`` is the
    stored content (also the initial content of a "mutable" tensor), exactly
    prod(shape) * itemsize bytes in ``dim_order``, and ``None`` for "planned" and "bound" tensors.
    """

    dtype: str
    shape: tuple[int, ...]
    dim_order: tuple[int, ...]
    dynamism: Dynamism
    kind: TensorKind
    data: memoryview | None
    name: str | None


@dataclass(frozen=True, slots=True)
class IndexList:
    """A list of integers of a method, each given as the id of the value that holds it."""

    items: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FileTensorList:
    """A list of tensors of a method, as value ids; ``None`` stands for an absent tensor."""

    items: tuple[int | None, ...]


FileValue: TypeAlias = (
    bool
    | int
    | float
    | str
    | FileTensor
    | IndexList
    | tuple[float, ...]
    | tuple[bool, ...]
    | FileTensorList
    | None
)


@dataclass(frozen=True, slots=True)
class KernelCall:
    """Call a CPU kernel, named as in ``aten.mean.out``, on the values with these ids."""

    op: str
    args: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DelegateCall:
    """Run a delegate of the method: value ids of its inputs, then of its outputs."""

    delegate: int
    args: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MoveCall:
    """Copy value ``source`` to value ``target``."""

    source: int
    target: int


@dataclass(frozen=True, slots=True)
class JumpFalseCall:
    """Go on at instruction ``target`` (their count means the end) if a value is false."""

    condition: int
    target: int


@dataclass(frozen=True, slots=True)
class FreeCall:
    """Drop the memory of a tensor."""

    value: int


Instruction: TypeAlias = KernelCall | DelegateCall | MoveCall | JumpFalseCall | FreeCall


@dataclass(frozen=True, slots=True)
class ValueList:
    """A list of values of a delegate, as value ids; none of them is a list."""

    items: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SymbolicInt:
    """An integer of a delegate that is computed at run time, and its value before that."""

    initial: int


@dataclass(frozen=True, slots=True)
class DelegateTensor:
    """A tensor of a delegate, row-major.

    ``shape`` holds upper bounds. ``data`` is the content of a constant, exactly
    prod(shape) * itemsize bytes, and ``constant_key`` the name it is stored under, if any.
    Tensors of equal ``memory_object`` >= 0 may share memory. ``staging_dtype`` is the element
    type on the host's side when the tensor is an input or output.
    """

    dtype: str
    shape: tuple[int, ...]
    data: memoryview | None
    constant_key: str | None
    memory_object: int
    staging_dtype: str


DelegateValue: TypeAlias = (
    bool
    | int
    | float
    | str
    | tuple[int, ...]
    | tuple[float, ...]
    | tuple[bool, ...]
    | ValueList
    | SymbolicInt
    | DelegateTensor
    | None
)


@dataclass(frozen=True, slots=True)
class DelegateNode:
    """One operator call of a delegate: ids of the schema's arguments, then of the output."""

    node_id: int
    name: str
    args: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DelegateGraph:
    """The operator calls of a Vulkan delegate, in order, and its values."""

    version: str
    calls: tuple[DelegateNode, ...]
    values: tuple[DelegateValue, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DelegateFile:
    """A delegate of a method; ``graph`` is read only for the backend "VulkanBackend"."""

    backend: str
    options: Mapping[str, bytes]
    graph: DelegateGraph | None


@dataclass(frozen=True, slots=True)
class MethodFile:
    """One method (such as "forward"): its values, and the instructions that compute outputs."""

    name: str
    values: tuple[FileValue, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    instructions: tuple[Instruction, ...]
    delegates: tuple[DelegateFile, ...]


@dataclass(frozen=True, slots=True)
class ProgramFile:
    """A whole program file; ``warnings`` are sentences about oddities that were put up with."""

    version: int
    methods: tuple[MethodFile, ...]
    warnings: tuple[str, ...]
