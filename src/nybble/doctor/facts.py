"""What is true of this machine: gathered here once, judged in :mod:`nybble.doctor.checks`."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from nybble.doctor.requirements import Requirements, own_requirements

__all__ = [
    "NO_ADAPTER_STATUS",
    "AdapterFacts",
    "Facts",
    "distribution",
    "driver_variables",
    "gather",
    "read_probe",
]

NO_ADAPTER_STATUS = 3
"""The probe's exit status where it found no adapter."""

_PACKAGES = (
    *("nybble", "numpy", "wgpu", "wgpudawn", "vulkan", "jinja2", "rich", "typer"),
    *("torch", "torchao", "executorch"),
)
_PROBE_SECONDS = 120.0
_DRIVER_VARIABLES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")


@dataclass(frozen=True)
class AdapterFacts:
    """One device of ``nybble.devices()``.

    ``packed_dot`` (of WebGPU) and ``trial`` (of Vulkan) are "" when the trial kernel was right.
    ``automatic`` says whether ``auto`` takes the device. Of Vulkan alone: threads of a subgroup,
    bits of the queue's timestamps, and whether the host shares the device's memory.
    """

    name: str
    adapter: str
    driver: str
    kind: str
    backend: str
    features: tuple[str, ...] = ()
    limits: Mapping[str, int] = field(default_factory=dict)
    packed_dot: str = "the trial kernel was not run"
    trial: str = ""
    automatic: bool = False
    subgroup_size: int = 0
    timestamp_bits: int = 0
    unified: bool = False

    @property
    def through_vulkan(self) -> bool:
        """Whether nybble reaches it through Vulkan itself, WebGPU aside."""
        return self.name.startswith("vulkan")


@dataclass(frozen=True)
class Facts:
    """Everything that the checks look at. ``packages`` has None for what is not installed.

    ``driver_variables`` are those set that tell the Vulkan loader which drivers there are.
    """

    python: tuple[int, int, int]
    system: str
    distribution: str
    packages: Mapping[str, str | None]
    adapters: tuple[AdapterFacts, ...] = ()
    probe_error: str = ""
    vulkan_problems: tuple[str, ...] = ()
    nvidia_device: bool = False
    render_node_refused: bool = False
    requirements: Requirements = field(default_factory=dict)
    driver_variables: Mapping[str, str] = field(default_factory=dict)


def gather() -> Facts:
    """Look at this machine. Starts one child process, which may take some seconds."""
    adapters, probe_error, vulkan_problems = _probe()
    nodes = list(Path("/dev/dri").glob("renderD*"))
    return Facts(
        python=sys.version_info[:3],
        system=platform.system(),
        distribution=distribution(),
        packages={name: _version(name) for name in _PACKAGES},
        adapters=adapters,
        probe_error=probe_error,
        vulkan_problems=vulkan_problems,
        nvidia_device=Path("/dev/nvidiactl").exists(),
        render_node_refused=bool(nodes) and not any(os.access(node, os.W_OK) for node in nodes),
        requirements=own_requirements(),
        driver_variables=driver_variables(),
    )


def read_probe(lines: list[str]) -> tuple[tuple[AdapterFacts, ...], str, tuple[str, ...]]:
    """Read the probe's lines: the adapters, its error or "", and what stops Vulkan.

    Lines cut short are left out.
    """
    adapters: dict[str, dict[str, Any]] = {}
    error, problems = "", []
    for line in lines:
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        error = record.get("error", error)
        problems += [record["vulkan_problem"]] if "vulkan_problem" in record else []
        if "name" in record:
            adapters.setdefault(record["name"], {}).update(record)
    known = AdapterFacts.__dataclass_fields__
    found = tuple(
        AdapterFacts(**{key: _frozen(value) for key, value in record.items() if key in known})
        for record in adapters.values()
    )
    return found, error, tuple(problems)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _probe() -> tuple[tuple[AdapterFacts, ...], str, tuple[str, ...]]:
    command = [sys.executable, "-m", "nybble.doctor.probe"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    try:
        child = subprocess.run(  # noqa: S603  our own module in our own interpreter
            command,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return (), f"the driver did not answer within {_PROBE_SECONDS:.0f} seconds", ()
    except OSError as error:
        return (), f"the probe could not be started: {error}", ()
    adapters, error_text, problems = read_probe(child.stdout.splitlines())
    if not error_text and child.returncode not in (0, NO_ADAPTER_STATUS):
        said = child.stderr.strip().splitlines()[-1:] or ["and said nothing"]
        error_text = f"the probe ended with exit status {child.returncode}: {said[0]}"
    return adapters, error_text, problems


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def driver_variables() -> dict[str, str]:
    """Return the environment's variables that name the Vulkan drivers to use, with their values."""
    return {name: os.environ[name] for name in _DRIVER_VARIABLES if os.environ.get(name)}


def distribution() -> str:
    """Return the ids of a Linux distribution and its relatives, such as "ubuntu debian"."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return ""
    return f"{release.get('ID', '')} {release.get('ID_LIKE', '')}".strip()
