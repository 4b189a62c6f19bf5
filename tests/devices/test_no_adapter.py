"""A machine without any adapter: `auto` runs on the host and says so, `webgpu` says what to do."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

FIXTURES = Path(__file__).parents[1] / "fixtures"


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Run Python where no Vulkan driver is to be found."""
    environment = {**os.environ, "VK_DRIVER_FILES": os.devnull, "VK_ICD_FILENAMES": os.devnull}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


def test_auto_warns_and_uses_the_host() -> None:
    """The program runs, right, with one warning that says why it is slow."""
    done = run(f"""
        import warnings, numpy as np, nybble
        stored = np.load({str(FIXTURES / "conv_odd.npz")!r})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            program = nybble.load({str(FIXTURES / "conv_odd.pte")!r})
        ours = [str(w.message) for w in caught if "nybble" in str(w.message)]
        print(len(ours), program.device.name, np.array_equal(program(stored["input_0"]),
              stored["output_0"]), [info.name for info in nybble.devices()])
        print(ours[0])
    """)
    first, second = done.stdout.splitlines()
    assert "1 host True ['host']" == first, done.stderr
    assert second.startswith(
        "running on the host's numpy references, which are slow: device 'webgpu' was "
        "not found; WebGPU adapters here: none. Run `nybble doctor` to see what is missing"
    )
    assert 0 == done.returncode


def test_webgpu_is_an_error_that_names_the_doctor() -> None:
    """Who asks for WebGPU gets an error instead of the host."""
    done = run(f"""
        import nybble
        try:
            nybble.load({str(FIXTURES / "conv_odd.pte")!r}, device="webgpu")
        except nybble.DeviceError as error:
            print(error)
    """)
    assert (
        "device 'webgpu' was not found; WebGPU adapters here: none. Run `nybble doctor` to see "
        "what is missing and how to get it, or use device='host'\n"
    ) == done.stdout, done.stderr
    assert 0 == done.returncode


def test_verify_of_auto_fails_where_nothing_would_be_compared() -> None:
    """A job that lost its adapter is not green; who names the host gets what was asked for."""
    program = str(FIXTURES / "conv_odd.pte")
    done = run(f"from nybble.cli import main; main(['verify', {program!r}])")
    assert 1 == done.returncode
    assert "the host would be compared with itself" in done.stderr
    assert (
        0
        == run(
            f"from nybble.cli import main; main(['verify', {program!r}, '-d', 'host'])"
        ).returncode
    )


def test_a_device_whose_package_is_missing_names_the_package() -> None:
    """Dawn comes in a package of its own."""
    done = run(f"""
        import importlib.util, sys, nybble
        sys.modules["wgpudawn"] = None
        importlib.util.find_spec = lambda name, package=None: None
        try:
            nybble.load({str(FIXTURES / "conv_odd.pte")!r}, device="dawn")
        except nybble.DeviceError as error:
            print(error)
    """)
    assert "device 'dawn' needs the package wgpudawn: pip install wgpudawn\n" == done.stdout, (
        done.stderr
    )
