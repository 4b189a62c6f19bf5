"""The Vulkan device uses Vulkan as its validation layer wants it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.device
ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
LAYER = "VK_LAYER_KHRONOS_validation"
CHECKS = (
    "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT",
    "VALIDATION_CHECK_ENABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT",
)
"""Hazards within a command buffer, and between those of a queue."""

VALIDATED = """
    import importlib, sys
    from dataclasses import replace
    from pathlib import Path
    import numpy as np
    import nybble
    from nybble.devices import _OPENED_VULKAN
    from nybble.devices.vulkan import VulkanDevice, find_adapter

    if sys.argv[1] == "without barriers":
        module = importlib.import_module("nybble.devices.vulkan.executable")
        module.barriers_before = lambda steps: [False] * len(steps)
    adapter = find_adapter("vulkan")
    if sys.argv[1] == "two memories":
        adapter = replace(adapter, info=replace(adapter.info, kind="discrete gpu"))
    device = _OPENED_VULKAN[adapter.info.name] = VulkanDevice(adapter)

    def run(name):
        stored = np.load(folder / f"{name}.npz")
        with nybble.load(folder / f"{name}.pte", device="vulkan") as program:
            method = program.method()
            given = [stored[f"input_{i}"] for i in range(len(method.inputs))]
            inputs = method.arrays(given)
            for _ in range(2):
                under_way = [method.executable.submit(inputs) for _ in range(3)]
                for state, content in dict(program.state).items():
                    program.state[state] = content
                for pending in under_way:
                    pending.result()
            method.profile(*given, repeats=2)
            method.verify(*given)

    def train(name):
        program = nybble.load(folder / f"{name}.pte", device="vulkan")
        trainer = nybble.Trainer(program)
        spec, output = program.method().inputs[0], program.method().outputs[0]
        x = (np.arange(np.prod(spec.shape)).reshape(spec.shape) % 7).astype(spec.dtype)
        labels = np.zeros(output.shape[:-1], int)
        losses = [trainer.step(x, labels) for _ in range(4)]
        trainer.forward(x)
        layer = trainer.layers[0].name
        trainer.engine.states.write(f"{layer}.latent", trainer.state(f"{layer}.latent"))
        losses.append(trainer.step(x, labels))
        assert all(map(np.isfinite, map(float, losses)))
        trainer.evaluate([(x, labels)])
        trainer.close()
        program.close()

    folder = Path(sys.argv[2])
    for what in sys.argv[3:]:
        kind, name = what.split(":")
        {"run": run, "train": train}[kind](name)
    device.close()
    print("done")
"""
INT8 = ("run:conv_odd", "run:small_cnn", "run:depthwise", "run:int8_two_delegates")
INT4 = ("run:q4_cached_attention", "train:q4_mlp_batch8")
TRANSFORMER = ("run:q4_transformer", "train:q4_transformer")


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ("one memory", INT8),
        ("two memories", INT8),
        ("one memory", INT4),
        ("two memories", INT4),
        ("two memories", TRANSFORMER),
    ],
)
def test_use_of_vulkan_is_valid(how: str, what: tuple[str, ...]) -> None:
    """The layer finds nothing, hazards included, in runs, copies, states, profiles and training."""
    done = validated(how, what)
    assert (0, "done\n") == (done.returncode, done.stdout[:3000]), done.stderr


def test_missing_barriers_are_found() -> None:
    """The layer does look: without our barriers it finds the hazards."""
    done = validated("without barriers", INT8)
    assert 0 == done.returncode, done.stderr
    assert "SYNC-HAZARD-READ-AFTER-WRITE" in done.stdout


def validated(how: str, what: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """A process that runs and trains fixtures under the validation layer."""
    if LAYER not in layers():
        pytest.skip("needs the validation layer (Debian: apt-get install vulkan-validationlayers)")
    environment = {
        **os.environ,
        "VK_INSTANCE_LAYERS": LAYER,
        "VK_LAYER_ENABLES": os.pathsep.join(CHECKS),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(VALIDATED), how, str(FIXTURES), *what],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip


def layers() -> set[str]:
    """The layers that the loader offers."""
    import vulkan

    return {layer.layerName for layer in vulkan.vkEnumerateInstanceLayerProperties()}
