"""Chooses, for every call, the kernel and with it the layouts of the values around it.

Backwards, each call tells its inputs the layout that its first viable kernel reads; forwards, each
call takes its first viable kernel, or of equally good (flexible) ones the one with the fewest
conversions. Conversions become calls of their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from nybble.contract import REGISTRY, ROW_MAJOR, Alias, AnyKernel, Composite, Kernel, Layout
from nybble.contract.emit_wgsl import bound_tensors, constants_of
from nybble.contract.params import params_values
from nybble.graph import Call, Graph, Value, make_call, nbytes

from .expand import expand_composites, parts_of
from .plan import Capabilities

__all__ = [
    "Choice", "Chosen", "choose_kernels", "precision_of", "viable_kernels", "why_on_host",
    "why_unviable",
]  # fmt: skip

LARGEST_GROWTH = 16
"""No packing of a constant makes it larger than this, but for small ones, which never matter."""
RELAYOUT = "nybble.relayout.default"
_RANGES = {
    "u32": (0, 2**32 - 1),
    "i32": (-(2**31), 2**31 - 1),
    "f32": (-math.inf, math.inf),
}


@dataclass(frozen=True)
class Choice:
    """A call and what runs it; ``kernel`` None means the reference on the host."""

    call: Call
    kernel: AnyKernel | None

    def layout(self, name: str) -> Layout:
        """The layout in which the tensor called ``name`` is read or written."""
        if self.kernel is None:
            return ROW_MAJOR
        if isinstance(self.kernel, Kernel):
            name = self.kernel.in_place.get(name, name)
        return self.kernel.layouts.get(name, ROW_MAJOR)

    def bound(self, name: str) -> bool:
        """Whether the kernel reads the tensor at all."""
        return not isinstance(self.kernel, Kernel) or name not in self.kernel.unused


@dataclass(frozen=True)
class Chosen:
    """The choices in order, every value's layout, the outputs (row-major), the states' finals."""

    choices: tuple[Choice, ...]
    layouts: dict[Value, Layout]
    outputs: tuple[Value, ...]
    finals: tuple[Value, ...]


def why_unviable(kernel: AnyKernel, call: Call, device: Capabilities) -> str | None:
    """Why a kernel cannot run a call on a device; None when it can."""
    names = dict(call.bound.names)
    if isinstance(kernel, Alias):
        return None if kernel.condition.evaluate(names) else f"needs {kernel.condition}"
    if (kernel.precision, device.precision) == ("float16", "float32"):
        return "is only as close as float16's tolerance, float32's is asked for"
    if isinstance(kernel, Composite):
        return _why_not_expanded(kernel, call, device)
    names.update(constants_of(kernel, names), **word_counts(kernel, call))
    if not kernel.condition.evaluate({**names, **device.facts()}):
        return f"needs {kernel.condition}"
    wide = _beyond_words(kernel, names)
    if wide:
        return f"{wide} does not fit 32 bits"
    return _why_not_bound(kernel, call, device)


def _why_not_expanded(composite: Composite, call: Call, device: Capabilities) -> str | None:
    """Why a device should not, or cannot, run the calls of a composite."""
    if not composite.condition.evaluate({**call.bound.names, **device.facts()}):
        return f"needs {composite.condition}"
    for part in parts_of(call, composite):
        if not viable_kernels(part, device):
            return f"its part {part.operator.name} cannot run: {why_on_host(part, device)}"
    return None


def _why_not_bound(kernel: Kernel, call: Call, device: Capabilities) -> str | None:
    """Which tensor of a call the device cannot bind as a kernel needs it, and why."""
    tensors = bound_tensors(kernel, call.bound)
    if len(tensors) > device.max_bindings:
        return f"binds {len(tensors)} buffers, the device allows {device.max_bindings}"
    sizes = {**call.inputs, **_results(call)}
    for tensor in tensors:
        value = sizes[tensor.name]
        if tensor.dtype.wgsl is None:
            return f"{tensor.dtype} has no form on the device"
        layout = kernel.layouts.get(tensor.name, ROW_MAJOR)
        if layout.unpack is None and value.constant is None:
            return f"'{tensor.name}' must be a constant"
        if layout.unpack is None and nbytes(value) * LARGEST_GROWTH <= device.max_binding:
            continue
        size = layout.words(value.dtype, value.shape, call.bound.names) * 4
        if size > device.max_binding and not kernel.split:
            return (
                f"'{tensor.name}' takes {size:,} bytes, "
                f"the device binds at most {device.max_binding:,}"
            )
        if size > device.max_buffer:
            return (
                f"'{tensor.name}' takes {size:,} bytes, "
                f"a buffer of the device holds at most {device.max_buffer:,}"
            )
    return None


def _beyond_words(kernel: Kernel, names: Mapping[str, Any]) -> str | None:
    """The first constant or parameter of a kernel that a shader's 32 bits cannot hold."""
    for name in kernel.fixed:
        value = names[name]
        if isinstance(value, int) and not -(2**31) <= value < 2**32:
            return f"{name} = {value}"
    for name, value in params_values(kernel, names).items():
        low, high = _RANGES[kernel.params[name].type]
        if not low <= value <= high:
            return f"{name} = {value}"
    return None


def word_counts(kernel: Kernel, call: Call) -> dict[str, int]:
    """``NAME_words`` of the tensors whose size in words the kernel's expressions read."""
    expressions = (*kernel.groups, *(param.value for param in kernel.params.values()))
    read = frozenset().union(*(expression.names for expression in expressions))
    values = {**call.inputs, **_results(call)}
    counts = {}
    for name, value in values.items():
        if f"{name}_words" in read:
            layout = kernel.layouts.get(name, ROW_MAJOR)
            size = layout.words(value.dtype, value.shape, call.bound.names)
            counts[f"{name}_words"] = size
    return counts


def viable_kernels(call: Call, device: Capabilities) -> list[AnyKernel]:
    """The first kernel that the device can run, and if it is flexible all that can.

    In declared order; a later kernel is no better than an earlier one that is not flexible.
    """
    found: list[AnyKernel] = []
    for kernel in call.operator.kernels if device.kernels else ():
        if why_unviable(kernel, call, device) is None:
            found.append(kernel)
            if isinstance(kernel, Composite) or (
                isinstance(kernel, Kernel) and not kernel.flexible
            ):
                break
    return found


def precision_of(call: Call, device: Capabilities) -> str:
    """How close the float results are of what runs a call: float32 or float16."""
    precisions = [getattr(k, "precision", "float32") for k in viable_kernels(call, device)]
    return "float16" if "float16" in precisions else "float32"


def choose_kernels(
    graph: Graph,
    device: Capabilities,
    forced: Mapping[Call, AnyKernel] | None = None,
    state_layouts: Mapping[str, Layout] | None = None,
) -> Chosen:
    """The calls of a graph with their kernels, layout conversions inserted.

    Args:
        graph: the program.
        device: what the device can do.
        forced: kernels to use whatever the cost, for tests.
        state_layouts: layouts that states have already, by name.
    """
    best = {call: _options(call, device, forced) for call in graph.calls}
    graph = expand_composites(graph, lambda call: best[call][0])
    candidates = {call: best.get(call) or _options(call, device, forced) for call in graph.calls}
    states = {
        state.value: layout
        for state in graph.states
        if (layout := (state_layouts or {}).get(state.name)) is not None
    }
    wanted = _demands(graph, candidates, {})
    for state in graph.states:
        states.setdefault(state.value, wanted.get(state.value, ROW_MAJOR))
    finals = {state.final: states[state.value] for state in graph.states}
    chooser = _Chooser(graph, _demands(graph, candidates, finals), states)
    for call in graph.calls:
        chooser.place(call, candidates[call])
    return chooser.finish()


def _options(
    call: Call, device: Capabilities, forced: Mapping[Call, AnyKernel] | None
) -> list[AnyKernel | None]:
    """What may run a call; None is the reference on the host."""
    if forced and call in forced:
        return [forced[call]]
    return list(viable_kernels(call, device)) or [None]


def _results(call: Call) -> dict[str, Value]:
    return {o.name: v for o, v in zip(call.operator.outputs, call.outputs, strict=True)}


def _demands(
    graph: Graph,
    candidates: Mapping[Call, list[AnyKernel | None]],
    finals: Mapping[Value, Layout],
) -> dict[Value, Layout]:
    demands: dict[Value, Layout] = dict.fromkeys(graph.outputs, ROW_MAJOR) | dict(finals)
    for call in reversed(graph.calls):
        options = [Choice(call, kernel) for kernel in _equals(candidates[call])]
        results = _results(call)
        misses = [
            sum(demands.get(v, c.layout(n)) != c.layout(n) for n, v in results.items())
            for c in options
        ]
        best = [c for c, count in zip(options, misses, strict=True) if count == min(misses)]
        for name, value in call.inputs.items():
            layouts = {c.layout(name) for c in best if c.bound(name)}
            # Where flexible kernels differ, they follow what the other calls need.
            if value.constant is None and len(layouts) == 1:
                demands[value] = layouts.pop()
    return demands


def _equals(
    kernels: list[AnyKernel | None],
) -> list[AnyKernel | None]:
    """The first kernel, and with it its siblings if it is flexible: all are equally good."""
    if isinstance(kernels[0], Kernel) and not kernels[0].flexible:
        return kernels[:1]
    return [k for k in kernels if not isinstance(k, Kernel) or k.flexible]


class _Chooser:
    def __init__(
        self, graph: Graph, demands: Mapping[Value, Layout], states: Mapping[Value, Layout]
    ) -> None:
        self.graph = graph
        self.demands = demands
        self.layouts: dict[Value, Layout] = dict.fromkeys(graph.inputs, ROW_MAJOR)
        self.layouts.update(states)
        self.converted: dict[tuple[Value, Layout], Value] = {}
        self.choices: list[Choice] = []
        self.numbers = count()

    def place(self, call: Call, kernels: list[AnyKernel | None]) -> None:
        options = [Choice(call, kernel) for kernel in _equals(kernels)]
        costs = [self._cost(option) for option in options]
        best = options[costs.index(min(costs))]
        changed = {
            name: self._in_layout(value, best.layout(name))
            for name, value in call.inputs.items()
            if value.constant is None and best.bound(name)
        }
        if any(call.inputs[name] is not value for name, value in changed.items()):
            call = call.replaced(**changed)
        self.choices.append(Choice(call, best.kernel))
        for name, value in _results(call).items():
            self.layouts[value] = best.layout(name)

    def _cost(self, option: Choice) -> int:
        call = option.call
        read = sum(
            self.layouts[value] != option.layout(name)
            and (value, option.layout(name)) not in self.converted
            for name, value in call.inputs.items()
            if value.constant is None and option.bound(name)
        )
        written = sum(
            self.demands.get(value, option.layout(name)) != option.layout(name)
            for name, value in _results(call).items()
        )
        return read + written

    def _in_layout(self, value: Value, layout: Layout) -> Value:
        have = self.layouts[value]
        if have == layout:
            return value
        if ROW_MAJOR not in (have, layout):
            return self._in_layout(self._in_layout(value, ROW_MAJOR), layout)
        if (value, layout) not in self.converted:
            operator = REGISTRY[RELAYOUT]
            call = make_call(
                operator,
                {"x": value},
                lambda: f"{value.name}_{layout.name}_{next(self.numbers)}",
                f"layout of %{value.name}",
            )
            kernel = next(
                k for k in operator.kernels
                if k.layouts.get("x", ROW_MAJOR) == have
                and k.layouts.get("out", ROW_MAJOR) == layout
            )  # fmt: skip
            self.choices.append(Choice(call, kernel))
            self.layouts[call.outputs[0]] = layout
            self.converted[value, layout] = call.outputs[0]
        return self.converted[value, layout]

    def finish(self) -> Chosen:
        """The choices, with conversions of outputs that do not lie row-major."""
        outputs = tuple(
            v if v.constant is not None else self._in_layout(v, ROW_MAJOR)
            for v in self.graph.outputs
        )
        finals = tuple(
            s.final
            if s.final.constant is not None
            else self._in_layout(s.final, self.layouts[s.value])
            for s in self.graph.states
        )
        return Chosen(tuple(self.choices), self.layouts, outputs, finals)


def why_on_host(call: Call, device: Capabilities) -> str:
    """Why no kernel of a call's operator runs it on the device, one reason a kernel."""
    reasons = [why_unviable(kernel, call, device) for kernel in call.operator.kernels]
    told = "; ".join(dict.fromkeys(reason for reason in reasons if reason))
    return told or "it has no kernel"
