"""The graphs of training: one step, the loss of a batch, and the forward pass.

They share states by name, so that plans of all three use one set of buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nybble.errors import ContractError
from nybble.graph import Call, Graph, GraphBuilder, Value
from nybble.passes import run_passes
from nybble.passes.drop_dead_calls import drop_dead_calls
from nybble.passes.drop_identities import drop_identities
from nybble.passes.fold_constants import fold_constants

from .adapter import Adapter
from .differentiate import gradients_that_exist
from .layers import QuantizedLayer
from .loss import Loss, loss_seeds

__all__ = ["IN_FLIGHT", "Setup", "StepGraph", "forward_graph", "loss_graph", "step_graph"]

IN_FLIGHT = 16
"""Steps that may be under way; the table of hyper-parameters has as many rows."""

_PASSES = (fold_constants, drop_identities, drop_dead_calls)


@dataclass(frozen=True, eq=False)
class Setup:
    """What is trained: a method's graph, the layers, adapters beside them, and the loss."""

    graph: Graph
    layers: tuple[QuantizedLayer, ...]
    adapters: tuple[Adapter, ...]
    loss: Loss
    labels: tuple[str, tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class StepGraph:
    """The graph of one step, the values that its forward part makes, and what a fault is at."""

    graph: Graph
    forward: frozenset[Value]
    checked: tuple[str, ...]


def forward_graph(setup: Setup) -> Graph:
    """The program's forward pass with the weights of now."""
    made = _Forward(setup, "forward")
    return run_passes(made.b.finish(_named(made.outputs)), _PASSES)


def loss_graph(setup: Setup) -> Graph:
    """The loss of a batch, and the program's outputs."""
    made = _Forward(setup, "evaluate")
    labels = made.b.input("labels", *setup.labels)
    loss, _ = loss_seeds(made.b, setup.loss, made.outputs, labels)
    return run_passes(made.b.finish({"loss": loss, **_named(made.outputs)}), _PASSES)


def _named(outputs: Sequence[Value]) -> dict[str, Value]:
    return {f"output_{i}": value for i, value in enumerate(outputs)}


class _Forward:
    """The calls of the program, with states for the codes and adapters added."""

    def __init__(self, setup: Setup, kind: str) -> None:
        graph = setup.graph
        self.b = b = GraphBuilder(f"{graph.name}.{kind}")
        self.codes: dict[str, Value] = {}
        self.factors: dict[str, tuple[Value, Value]] = {}
        known: dict[Value, Value] = {
            value: b.input(spec.name, value.dtype.name, value.shape)
            for value, spec in zip(graph.inputs, graph.input_specs, strict=True)
        }
        shared: dict[Value, Value] = {}
        for layer in setup.layers:
            if layer.weight not in shared:
                shared[layer.weight] = b.state(f"{layer.name}.codes", layer.codes)
                self.codes[layer.name] = shared[layer.weight]
        known.update(shared)
        for adapter in setup.adapters:
            self.factors[adapter.name] = adapter.add_states(b)
        beside = {adapter.layer.call: adapter for adapter in setup.adapters}
        for call in graph.calls:
            known = b.include([call], known)
            if call in beside:
                self._add_adapter(beside[call], call, known)
        b.origin = "training"
        self.outputs = tuple(known.get(value, value) for value in graph.outputs)

    def _add_adapter(self, adapter: Adapter, call: Call, known: dict[Value, Value]) -> None:
        x = call.arguments["x"]
        down, up = self.factors[adapter.name]
        self.b.origin = adapter.name
        known[call.outputs[0]] = adapter.apply(
            self.b, known.get(x, x), known[call.outputs[0]], down, up
        )


def step_graph(setup: Setup) -> StepGraph:
    """Forward, loss, gradients, and the update of every trained weight.

    Raises:
        ContractError: the loss does not depend on a trained layer.
        UnsupportedProgramError: operators between a trained layer and the loss have no gradient.
    """
    made = _Forward(setup, "step")
    b = made.b
    labels = b.input("labels", *setup.labels)
    loss, seeds = loss_seeds(b, setup.loss, made.outputs, labels)
    forward = frozenset(value for call in b.calls for value in call.outputs)
    parameters = _parameters(setup, made)
    found = gradients_that_exist(b, seeds, [p.read for p in parameters])
    _refuse_untrained(setup, [p for p in parameters if p.read not in found])
    b.origin = "update"
    updates = [(p, p.widened(b, found[p.read])) for p in parameters]
    checked = ["the loss", *(f"the gradient of {p.name}" for p, _ in reversed(updates))]
    fault = _fault(b, [loss, *(d for _, d in reversed(updates))])
    applied = b.state("applied", np.zeros(1, np.int32))
    hyper = b.call(
        "nybble.step_values.default",
        table=b.input("hyper", "float32", (IN_FLIGHT, 9)),
        applied=applied,
        base=b.input("base", "int32", (1,)),
    )
    for parameter, d_value in updates:
        parameter.update(b, d_value, hyper, fault)
    b.update(applied, b.call("nybble.advance.default", applied=applied, fault=fault))
    graph = run_passes(b.finish({"loss": loss, "fault": fault}), _PASSES)
    return StepGraph(graph, forward, tuple(checked))


def _fault(b: GraphBuilder, values: Sequence[Value]) -> Value:
    """[slot, count] of the first of ``values`` that holds a NaN or an infinity; slot -1 if none."""
    fault = b.constant(np.array([-1, 0], np.int32))
    for slot, value in enumerate(values):
        counts = b.call("nybble.count_nonfinite.default", x=value)
        fault = b.call("nybble.note_fault.default", fault=fault, counts=counts, slot=slot)
    return fault


@dataclass(frozen=True, eq=False)
class _Parameter:
    """A trained float value of ``layers``: the forward pass reads ``read`` in its stead."""

    name: str
    read: Value
    state: Value
    layers: tuple[str, ...]
    layer: QuantizedLayer | None = None

    def widened(self, b: GraphBuilder, d_value: Value) -> Value:
        """The gradient with zeros for columns of padding."""
        if d_value.shape == self.state.shape:
            return d_value
        extent = self.state.shape[1]
        value: Value = b.call("nybble.place.default", x=d_value, dim=1, extent=extent)
        return value

    def update(self, b: GraphBuilder, d_value: Value, hyper: Value, fault: Value) -> None:
        """Take the optimizer's step, and write the new codes."""
        zeros = np.zeros(self.state.shape, np.float32)
        moments = [b.state(f"{self.name}.{m}", zeros) for m in ("m", "v")]
        results = b.call(
            "nybble.adamw.default",
            param=self.state, m=moments[0], v=moments[1], grad=d_value, hyper=hyper, fault=fault,
        )  # fmt: skip
        for state, content in zip((self.state, *moments), results, strict=True):
            b.update(state, content)
        if self.layer is not None:
            codes = b.call(
                "et_vk.q4gsw_requant.default",
                latent=results[0],
                scales=self.layer.requant_scales,
                group_size=self.layer.group_size,
            )
            b.update(self.read, codes)


def _refuse_untrained(setup: Setup, parameters: Sequence[_Parameter]) -> None:
    """Weight decay alone would change a layer that the loss does not depend on."""
    if not parameters:
        return
    lost = {name for parameter in parameters for name in parameter.layers}
    named = ", ".join(layer.name for layer in setup.layers if layer.name in lost)
    others = [layer.name for layer in setup.layers if layer.name not in lost]
    what = "compute it from outputs that they lead to" if callable(setup.loss) else ""
    if others:
        what += f"{', or ' if what else ''}leave them out with trainable={others}"
    advice = what or "pass a function as loss that reads the outputs they lead to"
    raise ContractError(
        f"the loss does not depend on {named}, or through integers alone, so that no step would "
        f"train them; {advice}"
    )


def _parameters(setup: Setup, made: _Forward) -> list[_Parameter]:
    if setup.adapters:
        return [
            _Parameter(name, value, value, (adapter.name,))
            for adapter in setup.adapters
            for name, value in zip(adapter.factor_names, made.factors[adapter.name], strict=True)
        ]
    by_name: dict[str, Any] = {layer.name: layer for layer in setup.layers}
    return [
        _Parameter(
            name,
            codes,
            made.b.state(f"{name}.latent", layer.values(layer.codes)),
            tuple(one.name for one in setup.layers if one.weight is layer.weight),
            layer,
        )
        for name, codes in made.codes.items()
        for layer in [by_name[name]]
    ]
