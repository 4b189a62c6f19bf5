"""A plan: what a device replays. Plain data: it can be printed, compared and replayed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from nybble.contract import Array, Layout
from nybble.contract.layouts import Words
from nybble.graph import Call, TensorSpec, Value

__all__ = [
    "Capabilities", "Constant", "Dispatch", "HostCall", "Place", "Plan", "Region", "StatePlace",
]  # fmt: skip


@dataclass(frozen=True)
class Capabilities:
    """What planning needs to know of a device; the defaults are WebGPU's smallest device.

    Args:
        kernels: False for a device that runs the references and no shader.
        software: the adapter is a CPU.
        packed_dot: the shader compiler knows ``dot4I8Packed``.
        max_buffer: bytes of one buffer.
        max_binding: bytes of one storage binding.
        max_bindings: storage bindings of one dispatch.
        max_groups: workgroups along one dimension.
        max_threads: invocations of one workgroup.
        max_workgroup_bytes: workgroup memory.
        matrix_units: m x n x k of products on them, such as ``"i8xi8->i32 16x16x32"``.
        subgroups: the shader compiler knows ``subgroupShuffle`` and its kin.
        precision: the lowest that a kernel may have; see :class:`Kernel`.
    """

    kernels: bool = True
    software: bool = False
    packed_dot: bool = True
    max_buffer: int = 256 << 20
    max_binding: int = 128 << 20
    max_bindings: int = 8
    max_groups: int = 65535
    max_threads: int = 256
    max_workgroup_bytes: int = 16384
    matrix_units: tuple[str, ...] = ()
    subgroups: bool = False
    precision: Literal["float32", "float16"] = "float16"

    def facts(self) -> dict[str, Any]:
        """The names that a kernel's ``when`` may read (:data:`kernel.DEVICE_FACTS`)."""
        return {
            "software": self.software,
            "max_binding_words": self.max_binding // 4,
            "max_threads": self.max_threads,
            "max_workgroup_bytes": self.max_workgroup_bytes,
            "matrix_units": self.matrix_units,
            "subgroups": self.subgroups,
        }


@dataclass(frozen=True)
class Region:
    """Bytes of one buffer."""

    buffer: int
    offset: int
    size: int


@dataclass(frozen=True)
class Place:
    """Where a value lies: its layout and the buffer that holds it for its lifetime."""

    value: Value
    layout: Layout
    buffer: int

    @property
    def nbytes(self) -> int:
        """Bytes of the value in its layout, whole words."""
        return self.layout.words(self.value.dtype, self.value.shape, {}) * 4


@dataclass(frozen=True)
class Constant:
    """Words uploaded once, into a buffer of their own; ``source`` is what they were packed from."""

    buffer: int
    words: Words = field(repr=False)
    source: Array = field(repr=False)


@dataclass(frozen=True)
class StatePlace:
    """Where a state lies, and its content before the first run; ``final`` is what a run leaves."""

    name: str
    place: Place
    final: Value
    initial: Array = field(repr=False)


@dataclass(frozen=True)
class Dispatch:
    """One dispatch of a kernel. ``call`` indexes the plan's calls; ``shader`` is whole WGSL."""

    call: int
    label: str
    shader: str = field(repr=False)
    reads: tuple[Region, ...]
    writes: tuple[Region, ...]
    params: Region
    grid: tuple[int, int, int]
    bytes_moved: int
    operations: int


@dataclass(frozen=True)
class HostCall:
    """A call that the device does not take: its reference runs on the host."""

    call: int
    label: str
    reads: Mapping[str, Place]
    writes: tuple[Place, ...]


@dataclass(frozen=True)
class Plan:
    """Everything a device needs to run one method, in order.

    ``buffers`` are sizes in bytes; buffer 0 is the uniform buffer with every parameter record.
    ``places`` has where each call's results lie right after the call.
    """

    name: str
    calls: tuple[Call, ...]
    buffers: tuple[int, ...]
    constants: tuple[Constant, ...]
    params: bytes = field(repr=False)
    steps: tuple[Dispatch | HostCall, ...]
    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...]
    input_specs: tuple[TensorSpec, ...]
    output_specs: tuple[TensorSpec, ...]
    places: tuple[tuple[Place, ...], ...]
    states: tuple[StatePlace, ...] = ()

    def same_structure(self, other: Plan) -> bool:
        """Whether another plan differs in parameters and grids alone."""
        return (
            (self.buffers, len(self.params), len(self.steps))
            == (other.buffers, len(other.params), len(other.steps))
            and all(_same_step(a, b) for a, b in zip(self.steps, other.steps, strict=True))
            and all(map(_same_constant, self.constants, other.constants))
            and [_position(p) for p in (*self.inputs, *self.outputs)]
            == [_position(p) for p in (*other.inputs, *other.outputs)]
        )

    @property
    def host_calls(self) -> tuple[HostCall, ...]:
        """The calls that run on the host."""
        return tuple(step for step in self.steps if isinstance(step, HostCall))

    @property
    def constant_bytes(self) -> int:
        """Bytes of the constants on the device."""
        return sum(c.words.nbytes for c in self.constants)

    @property
    def device_bytes(self) -> int:
        """Bytes of every buffer."""
        return sum(self.buffers)

    @property
    def activation_bytes(self) -> int:
        """Bytes of the buffers shared by intermediate values, inputs and outputs."""
        kept = {0, *(c.buffer for c in self.constants), *(s.place.buffer for s in self.states)}
        return sum(size for i, size in enumerate(self.buffers) if i not in kept)

    def largest_live_set(self) -> int:
        """Bytes of the largest set of values that must exist at once."""
        spans = self._spans()
        last = len(self.steps) + 1
        return max((sum(s for a, b, s in spans if a <= t <= b) for t in range(-1, last)), default=0)

    def _spans(self) -> list[tuple[int, int, int]]:
        first: dict[Value, int] = {p.value: -1 for p in self.inputs}
        final: dict[Value, int] = {p.value: -1 for p in self.inputs}
        size: dict[Value, int] = {p.value: p.nbytes for p in self.inputs}
        same = self._aliases()
        for at, step in enumerate(self.steps):
            for place in self.places[step.call]:
                first.setdefault(place.value, at)
                final[place.value] = at
                size[place.value] = place.nbytes
            for value in self.calls[step.call].inputs.values():
                if same.get(value, value) in first:
                    final[same.get(value, value)] = at
        for place in self.outputs:
            value = same.get(place.value, place.value)
            if value in first:
                final[value] = len(self.steps)
        return [(first[v], final[v], size[v]) for v in first]

    def _aliases(self) -> dict[Value, Value]:
        """The value in whose buffer each result of a call without a step lies."""
        stepped = {step.call for step in self.steps}
        buffers = {p.value: p.buffer for places in (self.inputs, *self.places) for p in places}
        same: dict[Value, Value] = {}
        for index, call in enumerate(self.calls):
            if index in stepped:
                continue
            for value in call.inputs.values():
                if buffers.get(value) == buffers[call.outputs[0]]:
                    same[call.outputs[0]] = same.get(value, value)
        return same

    def __str__(self) -> str:
        lines = [f"plan {self.name}: {len(self.steps)} steps, {self.device_bytes:,} bytes"]
        for step in self.steps:
            if isinstance(step, HostCall):
                lines.append(f"  host {step.label}")
                continue
            grid = "x".join(map(str, step.grid))
            reads = ", ".join(f"b{r.buffer}" for r in step.reads)
            writes = ", ".join(f"b{r.buffer}" for r in step.writes)
            lines.append(f"  {step.label} grid {grid}: {reads} -> {writes}")
        return "\n".join(lines)


def _same_step(one: Dispatch | HostCall, other: Dispatch | HostCall) -> bool:
    if not isinstance(one, Dispatch) or not isinstance(other, Dispatch):
        return False
    return (one.shader, one.reads, one.writes, one.params) == (
        other.shader,
        other.reads,
        other.writes,
        other.params,
    )


def _same_constant(one: Constant, other: Constant) -> bool:
    """Whether two constants are one: the same memory of a file, or folded to the same content."""
    first, second = one.source, other.source
    if (one.buffer, first.shape, first.dtype) != (other.buffer, second.shape, second.dtype):
        return False
    same_memory = first.__array_interface__["data"] == second.__array_interface__["data"]
    return same_memory or bool(np.array_equal(first, second))


def _position(place: Place) -> tuple[int, str, tuple[int, ...]]:
    return (place.buffer, place.layout.name, place.value.shape)
