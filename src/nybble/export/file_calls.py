"""Reads the operator calls of a written program, each with the constants and numbers it carries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nybble.formats import (
    DelegateCall,
    DelegateGraph,
    DelegateTensor,
    FileTensor,
    KernelCall,
    MethodFile,
    ValueList,
    read_program,
)

if TYPE_CHECKING:
    from nybble.export.report import Form

__all__ = ["FileCall", "calls_in_file"]

Constant = DelegateTensor | FileTensor


@dataclass(frozen=True)
class FileCall:
    """One operator call of a program, in a delegate or (``outside``) beside the delegates.

    ``constants`` are those that it reads directly or through calls on constants alone, such as
    prepacking; such calls are part of their reader and are not listed themselves.
    """

    name: str
    outside: bool
    constants: tuple[Constant, ...]
    numbers: frozenset[float]

    @property
    def form(self) -> Form:
        """What it computes on: codes of int8 or int4, or float32."""
        if self.name.startswith(("et_vk.q8ta_", "et_vk.linear_q8ta_")):
            return "int8"
        if self.name.startswith("et_vk.linear_dq8ca_"):
            return "int8-dynamic"
        if self.name.startswith(("et_vk.linear_q", "et_vk.embedding_q")):
            return "int4"
        return "float32"


def calls_in_file(data: bytes) -> tuple[FileCall, ...]:
    """Every operator call of every method, in the order of the instructions."""
    return tuple(call for method in read_program(data).methods for call in _of_method(method))


def _of_method(method: MethodFile) -> Iterator[FileCall]:
    tracer = _Tracer(method.values, outside=True)
    for instruction in method.instructions:
        if isinstance(instruction, KernelCall):
            # The output of a kernel call is listed twice, as last argument and as result.
            yield from tracer.read(instruction.op, instruction.args[:-2], instruction.args[-1])
        elif isinstance(instruction, DelegateCall):
            graph = method.delegates[instruction.delegate].graph
            if graph is not None:
                yield from _of_graph(graph)


def _of_graph(graph: DelegateGraph) -> Iterator[FileCall]:
    tracer = _Tracer(graph.values, outside=False)
    for node in graph.calls:
        yield from tracer.read(node.name, node.args[:-1], node.args[-1])


class _Tracer:
    """Follows constants through the calls of one list of values."""

    def __init__(self, values: Sequence[object], *, outside: bool) -> None:
        self._values = values
        self._outside = outside
        self._derived: dict[int, tuple[Constant, ...]] = {}

    def read(self, name: str, args: Iterable[int], output: int) -> Iterator[FileCall]:
        ids = list(self._flat(args))
        tensors = [i for i in ids if isinstance(self._values[i], (DelegateTensor, FileTensor))]
        known = [self._constants(i) for i in tensors]
        constants = tuple(constant for group in known if group for constant in group)
        if tensors and all(known):
            self._derived[output] = constants
            return
        numbers = frozenset(
            float(value)
            for value in (self._values[i] for i in ids)
            if isinstance(value, (int, float))
        )
        yield FileCall(name, self._outside, constants, numbers)

    def _flat(self, ids: Iterable[int]) -> Iterator[int]:
        for i in ids:
            value = self._values[i]
            yield from value.items if isinstance(value, ValueList) else (i,)

    def _constants(self, i: int) -> tuple[Constant, ...] | None:
        value = self._values[i]
        if isinstance(value, (DelegateTensor, FileTensor)) and value.data is not None:
            return (value,)
        return self._derived.get(i)
