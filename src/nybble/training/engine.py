"""The plans of a trainer on its device, and the states that they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nybble.contract import Array
from nybble.devices import Device, Executable
from nybble.devices.base import Pending
from nybble.graph import Graph
from nybble.plan import Plan, make_plan

from .memory import fit_memory
from .step import Setup, forward_graph, loss_graph, step_graph

__all__ = ["Engine"]


class Engine:
    """Prepares the step at once, and evaluation when it is first asked for."""

    def __init__(self, device: Device, setup: Setup, memory_budget: int | None) -> None:
        self.device = device
        self.setup = setup
        self.states = device.new_states()
        step = step_graph(setup)
        self.checked = step.checked
        _, plan = fit_memory(step, memory_budget, self._plan)
        self.step_executable = device.prepare(plan, self.states)
        self._forward: Executable | None = None
        self._loss: Executable | None = None

    @property
    def plan(self) -> Plan:
        """The plan of a step."""
        return self.step_executable.plan

    def submit(self, inputs: Sequence[Array]) -> Pending:
        """Start a step; inputs in the plan's order."""
        return self.step_executable.submit(inputs)

    def forward(self, inputs: Sequence[Array]) -> list[Array]:
        """The program's outputs with the weights of now."""
        self._forward = self._forward or self._prepared(forward_graph)
        return self._forward.run(inputs)

    def loss(self, inputs: Sequence[Array]) -> list[Array]:
        """The loss of a batch, and the program's outputs."""
        self._loss = self._loss or self._prepared(loss_graph)
        return self._loss.run(inputs)

    def close(self) -> None:
        """Free what the device holds."""
        for executable in (self.step_executable, self._forward, self._loss):
            if executable is not None:
                executable.close()
        self.states.close()

    def _prepared(self, graph_of: Callable[[Setup], Graph]) -> Executable:
        return self.device.prepare(self._plan(graph_of(self.setup)), self.states)

    def _plan(self, graph: Graph) -> Plan:
        return make_plan(graph, self.device.capabilities, state_layouts=self.states.layouts())
