"""One training step of a 4-bit perceptron, kernel time, beside torch's float32 eager step.

The step is forward, loss, backward, the guard against NaN, AdamW on float latents, and the new
codes. Torch trains the float network of the latents alone: no rounding, no guard.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from bench.beside_torch import cuda_sample
from bench.common import Row, Sample, Targets, step_times, timed
from nybble.contract import Array
from nybble.devices import Device
from nybble.devices.base import TimedExecutable
from nybble.graph import Graph, GraphBuilder
from nybble.program import Method, Program
from nybble.training import Trainer
from nybble.training.optimizer import AdamW, Constant, hyper_table
from nybble.training.step import IN_FLIGHT

__all__ = ["measure", "perceptron"]

GROUP = 32
BURST = 10
"""Steps that are submitted before the last is waited for; fewer than a trainer's IN_FLIGHT."""
TARGETS = Targets(webgpu="<= 1.3 x torch", vulkan="< torch")
SHAPES = {False: (4, 4096, 256), True: (4, 256, 64)}
"""Layers, width and batch, by whether the adapter is a processor."""


def perceptron(layers: int, width: int, batch: int) -> Graph:
    """Square 4-bit layers with random codes, relu between."""
    rng = np.random.default_rng(0)
    b = GraphBuilder("forward")
    value = b.input("input_0", "float32", (batch, width))
    for number in range(layers):
        if number:
            value = b.call("aten.relu.default", x=value)
        value = b.call(
            "et_vk.linear_q4gsw.default",
            x=value,
            weight=rng.integers(0, 256, (width, width // 2), np.uint8),
            scales=np.full((width // GROUP, width), 0.2 * width**-0.5, np.float32),
            group_size=GROUP,
            bias=None,
        )
    return b.finish([value])


def measure(device: Device) -> list[Row]:
    """Kernel time and memory of a step."""
    software = device.capabilities.software
    layers, width, batch = SHAPES[software]
    states = device.new_states()
    method = Method(device, perceptron(layers, width, batch), "error", states)
    trainer = Trainer(Program(device, [method], states))
    method.close()
    executable = cast(TimedExecutable, trainer.engine.step_executable)
    rng = np.random.default_rng(1)
    inputs = [
        rng.standard_normal((batch, width)).astype(np.float32),
        rng.integers(0, width, batch).astype(np.int32),
        hyper_table(AdamW(), Constant(), 0, IN_FLIGHT),
        np.zeros(1, np.int32),
    ]
    for _ in range(3):
        executable.run(inputs)
    steps = range(len(executable.plan.steps))
    kernels = step_times(executable, steps, 5 if software else 20)
    burst = _burst(executable, inputs)
    shape = f"{layers} layers of {width}, batch {batch}"
    rows = [
        Row("training", f"4-bit step, {shape}", kernels.median * 1e6, "us", kernels,
            target=TARGETS.of(device), note=f"{len(steps)} dispatches"),
        Row("training", f"4-bit step in a row of {BURST}, batches copied in", burst.median * 1e6,
            "us", burst, note="wall time a step"),
        _memory(trainer, shape),
    ]  # fmt: skip
    trainer.close()
    theirs = None if software else _torch_step(layers, width, batch)
    if theirs is not None:
        ratio = f"nybble takes {kernels.median / theirs.median:.2f} of it"
        rows.append(Row("torch CUDA", f"float32 step, {shape}", theirs.median * 1e6, "us", theirs,
                        note=ratio))  # fmt: skip
    return rows


def _burst(executable: TimedExecutable, inputs: Sequence[Array]) -> Sample:
    """Wall time of a step among several that the host does not wait for one by one."""

    def run() -> None:
        pending = [executable.submit(inputs) for _ in range(BURST)]
        for one in pending:
            one.result()

    whole = timed(run)
    return Sample(whole.median / BURST, whole.least / BURST, whole.most / BURST, whole.runs)


def _memory(trainer: Trainer, shape: str) -> Row:
    plan = trainer.engine.plan
    floor = sum(state.place.nbytes for state in plan.states) + 1.2 * plan.largest_live_set()
    return Row("training", f"memory of the step, {shape}", plan.device_bytes / 1e6, "MB",
               target=f"<= {floor / 1e6:.4g} MB",
               note="latents, moments, codes; 1.2 x live activations and gradients")  # fmt: skip


def _torch_step(layers: int, width: int, batch: int) -> Sample | None:
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    if not torch.cuda.is_available():
        return None
    modules: list[Any] = []
    for number in range(layers):
        modules += [torch.nn.ReLU()] if number else []
        modules.append(torch.nn.Linear(width, width, bias=False))
    network = torch.nn.Sequential(*modules).cuda()
    optimizer = torch.optim.AdamW(network.parameters(), 1e-3)
    x = torch.randn(batch, width, device="cuda")
    labels = torch.randint(0, width, (batch,), device="cuda")

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(x), labels).backward()
        optimizer.step()

    return cuda_sample(torch, step, 20)
