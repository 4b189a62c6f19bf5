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
    import nybble.ops
    from nybble.devices.vulkan import VulkanDevice, find_adapter
    from nybble.graph.build import build_graph
    from nybble.formats import read_program
    from nybble.plan import make_plan

    if sys.argv[1] == "without barriers":
        module = importlib.import_module("nybble.devices.vulkan.executable")
        module.barriers_before = lambda steps: [False] * len(steps)
    adapter = find_adapter("vulkan")
    if sys.argv[1] == "two memories":
        adapter = replace(adapter, info=replace(adapter.info, kind="discrete gpu"))
    device = VulkanDevice(adapter)
    folder = Path(sys.argv[2])
    for name in sys.argv[3:]:
        data = (folder / f"{name}.pte").read_bytes()
        graph = build_graph(read_program(data, []).methods[0])
        stored = np.load(folder / f"{name}.npz")
        inputs = [stored[f"input_{i}"] for i in range(len(graph.inputs))]
        states = device.new_states()
        executable = device.prepare(make_plan(graph, device.capabilities), states)
        for pending in [executable.submit(inputs) for _ in range(3)]:
            pending.result()
        executable.profile(inputs, 1)
        executable.close()
        states.close()
    device.close()
    print("done")
"""


@pytest.mark.parametrize("how", ["one memory", "two memories", "without barriers"])
def test_use_of_vulkan_is_valid(how: str, tmp_path: Path) -> None:
    """The validation layer finds nothing, hazards included; without our barriers it finds them."""
    if LAYER not in layers():
        pytest.skip("needs the validation layer (Debian: apt-get install vulkan-validationlayers)")
    environment = {
        **os.environ,
        "VK_INSTANCE_LAYERS": LAYER,
        "VK_LAYER_ENABLES": os.pathsep.join(CHECKS),
        "XDG_CACHE_HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT / "src"),
    }
    names = ["conv_odd", "small_cnn", "depthwise"]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(VALIDATED), how, str(FIXTURES), *names],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert 0 == done.returncode, done.stderr
    if how == "without barriers":
        assert "SYNC-HAZARD-READ-AFTER-WRITE" in done.stdout
    else:
        assert "done\n" == done.stdout, done.stdout[:3000]


def layers() -> set[str]:
    """The layers that the loader offers."""
    import vulkan

    return {layer.layerName for layer in vulkan.vkEnumerateInstanceLayerProperties()}
