"""Graph -> Plan: kernels chosen, buffers shared, parameters packed, grids folded."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from nybble.contract import ROW_MAJOR, Alias, AnyKernel, Kernel, Layout
from nybble.contract.emit_wgsl import bound_tensors, constants_of, emit_wgsl
from nybble.contract.params import params_record, params_values
from nybble.errors import OutOfDeviceMemoryError
from nybble.graph import Call, Graph, Value

from .choose import Choice, choose_kernels, word_counts
from .memory import Lifetime, share_buffers
from .place import Placement, place_values
from .plan import Capabilities, Constant, Dispatch, HostCall, Place, Plan, Region, StatePlace

__all__ = ["make_plan"]

SLOT = 256
"""Alignment of a record in the uniform buffer: WebGPU's largest minimum offset alignment."""
ALIGNMENT = 16
"""Buffers are whole vec4s, so a kernel may read the last one whole."""
SPLIT_ELEMENTS = 1 << 16
"""Pieces of a split tensor begin at multiples of this: aligned for every element size."""


def make_plan(
    graph: Graph,
    device: Capabilities,
    *,
    keep: bool = False,
    forced: Mapping[Call, AnyKernel] | None = None,
    state_layouts: Mapping[str, Layout] | None = None,
) -> Plan:
    """Plan a graph for a device.

    Args:
        graph: the program.
        device: what the device can do.
        keep: give every value a buffer of its own, so that all can be read after a run.
        forced: kernels by call, for tests.
        state_layouts: layouts that states have already in another plan, by name.

    Raises:
        OutOfDeviceMemoryError: a value is larger than a buffer of the device may be.
    """
    chosen = choose_kernels(graph, device, forced, state_layouts)
    return _Lowering(graph, device, place_values(graph, chosen, keep=keep), keep).plan()


class _Lowering:
    def __init__(
        self, graph: Graph, device: Capabilities, placement: Placement, keep: bool
    ) -> None:
        self.graph = graph
        self.device = device
        self.placement = placement
        self.choices = placement.choices
        self.graph_outputs = placement.outputs
        self.layouts = placement.layouts
        self.keep = keep
        self.buffer_of: dict[Value, int] = {}
        self.sizes: list[int] = [0]
        self.constants: list[Constant] = []
        self.constant_of: dict[tuple[int, str, int], int] = {}
        self.records: list[bytes] = []

    def plan(self) -> Plan:
        self._assign_buffers()
        steps = tuple(step for i, c in enumerate(self.choices) for step in self._steps(i, c))
        params = b"".join(record.ljust(SLOT, b"\0") for record in self.records)
        # Before the buffers are listed: an output that is a constant gets one here.
        outputs = tuple(self._output(value) for value in self.graph_outputs)
        self.sizes[0] = max(len(params), SLOT)
        return Plan(
            name=self.graph.name,
            calls=tuple(choice.call for choice in self.choices),
            buffers=tuple(self.sizes),
            constants=tuple(self.constants),
            params=params,
            steps=steps,
            inputs=tuple(self._place(value) for value in self.graph.inputs),
            outputs=outputs,
            input_specs=self.graph.input_specs,
            output_specs=self.graph.output_specs,
            places=tuple(tuple(map(self._place, c.call.outputs)) for c in self.choices),
            states=tuple(
                StatePlace(state.name, self._place(state.value), final, state.initial)
                for state, final in zip(self.graph.states, self.placement.finals, strict=True)
            ),
        )

    def _root(self, value: Value) -> Value:
        return self.placement.root(value)

    def _bytes(self, value: Value) -> int:
        layout = self.layouts[value]
        size = layout.words(value.dtype, value.shape, {}) * 4
        return max(ALIGNMENT, -(-size // ALIGNMENT) * ALIGNMENT)

    def _assign_buffers(self) -> None:
        states = [state.value for state in self.graph.states]
        first: dict[Value, int] = dict.fromkeys((*self.graph.inputs, *states), -1)
        last: dict[Value, int] = dict(first)
        for step, choice in enumerate(self.choices):
            for value in choice.call.outputs:
                first.setdefault(self._root(value), step)
                last[self._root(value)] = step
            for value in choice.call.inputs.values():
                if value.constant is None:
                    last[self._root(value)] = step
        for value in self.graph_outputs:
            if value.constant is None:
                last[self._root(value)] = len(self.choices)
        values = [value for value in first if value not in states]
        end = len(self.choices)
        lifetimes = [
            Lifetime(self._bytes(v), -1 if self.keep else first[v], end if self.keep else last[v])
            for v in values
        ]
        self._check_sizes(values, lifetimes)
        assigned, sizes = share_buffers(lifetimes)
        base = len(self.sizes)
        self.sizes += sizes
        self.buffer_of = {v: base + a for v, a in zip(values, assigned, strict=True)}
        for value in states:
            self.buffer_of[value] = len(self.sizes)
            self.sizes.append(self._bytes(value))

    def _check_sizes(self, values: list[Value], lifetimes: list[Lifetime]) -> None:
        if not self.device.kernels:
            return
        for value, life in zip(values, lifetimes, strict=True):
            if life.nbytes > self.device.max_buffer:
                raise OutOfDeviceMemoryError(
                    f"%{value.name} ({value}) takes {life.nbytes:,} bytes; a buffer of this device "
                    f"holds at most {self.device.max_buffer:,}. "
                    "Use a smaller batch or device='host'"
                )

    def _place(self, value: Value) -> Place:
        return Place(value, self.layouts[value], self.buffer_of[self._root(value)])

    def _output(self, value: Value) -> Place:
        if value.constant is None:
            return self._place(value)
        return Place(value, ROW_MAJOR, self._constant(value, ROW_MAJOR, {}))

    def _constant(self, value: Value, layout: Layout, names: Mapping[str, Any]) -> int:
        context = 0 if layout.unpack is not None else id(names)
        key = (id(value), layout.name, context)
        if key not in self.constant_of:
            assert value.constant is not None
            words = layout.pack(value.constant, names)
            self.constant_of[key] = len(self.sizes)
            self.constants.append(Constant(len(self.sizes), words, value.constant))
            self.sizes.append(max(ALIGNMENT, -(-words.nbytes // ALIGNMENT) * ALIGNMENT))
        return self.constant_of[key]

    def _steps(self, index: int, choice: Choice) -> Iterator[Dispatch | HostCall]:
        call = choice.call
        if choice.kernel is None:
            reads = {n: self._place(v) for n, v in call.inputs.items() if v.constant is None}
            yield HostCall(index, call.operator.name, reads, tuple(map(self._place, call.outputs)))
        elif isinstance(choice.kernel, Kernel) and any(math.prod(v.shape) for v in call.outputs):
            yield from self._dispatches(index, call, choice.kernel)
        elif isinstance(choice.kernel, Alias):
            source = call.inputs[choice.kernel.source]
            if source.constant is not None:
                yield HostCall(index, call.operator.name, {}, tuple(map(self._place, call.outputs)))

    def _dispatches(self, index: int, call: Call, kernel: Kernel) -> Iterator[Dispatch]:
        names = dict(call.bound.names)
        constants = constants_of(kernel, names)
        names.update(constants)
        shader = emit_wgsl(kernel, call.bound, constants, packed_dot=self.device.packed_dot)
        regions = self._regions(call, kernel)
        names.update(word_counts(kernel, call))
        pieces = self._pieces(call, kernel)
        for start, count in pieces:
            piece = {**names, "count": count} if kernel.split else names
            values = params_values(kernel, piece)
            grid = self._grid(kernel, {**piece, **values})
            if 0 in grid:
                continue
            width = grid[0] if len(kernel.groups) == 1 else 0
            at = len(self.records) * SLOT
            record = params_record(kernel, values, width)
            self.records.append(record)
            reads, writes = (
                tuple(self._cut(r, size, start, count) if kernel.split else r for r, size in side)
                for side in regions
            )
            yield Dispatch(
                call=index,
                label=f"{call.operator.name} {kernel.shader.removesuffix('.wgsl')}",
                shader=shader,
                reads=reads,
                writes=writes,
                params=Region(0, at, len(record)),
                grid=grid,
                bytes_moved=sum(r.size for r in (*reads, *writes)),
                operations=int(call.operator.operations.evaluate(names)) // len(pieces),
            )

    def _regions(
        self, call: Call, kernel: Kernel
    ) -> tuple[list[tuple[Region, int]], list[tuple[Region, int]]]:
        reads: list[tuple[Region, int]] = []
        writes: list[tuple[Region, int]] = []
        results = {o.name: v for o, v in zip(call.operator.outputs, call.outputs, strict=True)}
        for tensor in bound_tensors(kernel, call.bound):
            value = results.get(tensor.name) or call.inputs[tensor.name]
            layout = kernel.layouts.get(tensor.name, ROW_MAJOR)
            if value.constant is None:
                buffer = self.buffer_of[self._root(value)]
                size = self._bytes(value)
            else:
                buffer = self._constant(value, layout, call.bound.names)
                size = self.sizes[buffer]
            region = Region(buffer, 0, size)
            (writes if tensor.writable else reads).append((region, tensor.dtype.itemsize))
        return reads, writes

    def _pieces(self, call: Call, kernel: Kernel) -> list[tuple[int, int]]:
        """(first element, elements) of each dispatch of a call."""
        total = int(call.bound.names["count"])
        widest = max(t.dtype.itemsize for t in bound_tensors(kernel, call.bound))
        limit = self.device.max_binding // widest
        if not kernel.split or total <= limit:
            return [(0, total)]
        step = max(SPLIT_ELEMENTS, limit // SPLIT_ELEMENTS * SPLIT_ELEMENTS)
        return [(at, min(step, total - at)) for at in range(0, total, step)]

    @staticmethod
    def _cut(region: Region, itemsize: int, start: int, count: int) -> Region:
        size = min(-(-count * itemsize // ALIGNMENT) * ALIGNMENT, region.size - start * itemsize)
        return Region(region.buffer, start * itemsize, size)

    def _grid(self, kernel: Kernel, names: Mapping[str, Any]) -> tuple[int, int, int]:
        sizes = [int(expression.evaluate(names)) for expression in kernel.groups]
        if len(sizes) == 1:
            return _fold(sizes[0], self.device.max_groups)
        if max(sizes) > self.device.max_groups:
            raise OutOfDeviceMemoryError(
                f"{kernel.shader}: a grid of {sizes} exceeds the device's "
                f"{self.device.max_groups} workgroups a dimension"
            )
        x, y, z = (*sizes, 1, 1)[:3]
        return (x, y, z)


def _fold(groups: int, limit: int) -> tuple[int, int, int]:
    """A linear grid as two dimensions within the limit; the surplus is masked by the body."""
    if groups <= limit:
        return (groups, 1, 1)
    rows = -(-groups // limit)
    return (-(-groups // rows), rows, 1)
