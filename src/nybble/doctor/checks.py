"""From facts to findings: what is there, what is missing, and how to get it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from nybble.doctor.facts import AdapterFacts, Facts
from nybble.doctor.requirements import satisfies

__all__ = ["Check", "Status", "driver_remedy", "judge"]

Status = Literal["ok", "note", "missing"]

_FEATURES = {
    "timestamp-query": "nybble profile times dispatches less exactly",
    "shader-f16": "not needed, every kernel works without",
    "subgroup": "not needed, every kernel works without",
}
# The smallest WebGPU device's values, which all kernels stay inside unless an adapter offers more.
_LIMITS = {
    "max-storage-buffer-binding-size": (128 << 20, "a binding"),
    "max-buffer-size": (256 << 20, "a buffer"),
    "max-compute-workgroup-storage-size": (16 << 10, "workgroup memory"),
    "max-compute-invocations-per-workgroup": (256, "threads a workgroup"),
    "max-compute-workgroups-per-dimension": (65535, "workgroups a dimension"),
    "max-storage-buffers-per-shader-stage": (8, "storage buffers a kernel"),
}


@dataclass(frozen=True)
class Check:
    """One finding: ``detail`` says what is, ``remedy`` what to do about it ("" for nothing)."""

    name: str
    status: Status
    detail: str
    remedy: str = ""


def judge(facts: Facts) -> tuple[Check, ...]:
    """Return every check, in the order in which a reader wants them."""
    return tuple(
        check
        for checks in (_versions(facts), _adapters(facts), _environment(facts), _extras(facts))
        for check in checks
    )


def _versions(facts: Facts) -> Iterator[Check]:
    python = ".".join(map(str, facts.python))
    if facts.python >= (3, 10, 0):
        yield Check("Python", "ok", f"{python} on {facts.system}")
    else:
        yield Check("Python", "missing", python, "nybble needs Python 3.10 or newer.")
    version = facts.packages.get("nybble")
    yield Check("nybble", "ok", version or "run from its source, not installed")
    for name in ("numpy", "wgpu"):
        version = facts.packages.get(name)
        if version is None:
            yield Check(name, "missing", "not installed", f"pip install {name}")
        elif not _misfits(facts, "", [name]):
            yield Check(name, "ok", version)
    asked = facts.requirements.get("", {})
    for name in _misfits(facts, "", list(asked)):
        detail = f"{facts.packages[name]} does not fit {name}{asked[name]}"
        yield Check(name, "missing", detail, f'pip install "{name}{asked[name]}"')


def _adapters(facts: Facts) -> Iterator[Check]:
    if facts.probe_error:
        remedy = driver_remedy(facts.system, facts.distribution, facts.driver_variables)
        yield Check("WebGPU", "missing", facts.probe_error, remedy)
    for adapter in facts.adapters:
        yield from _vulkan_adapter(adapter) if adapter.through_vulkan else _adapter(adapter)
    for problem in facts.vulkan_problems:
        yield Check("Vulkan", "note", problem, "" if facts.probe_error else _WITHOUT_VULKAN)
    if facts.nvidia_device and not any("nvidia" in _text(item) for item in facts.adapters):
        detail = "an NVIDIA device is present (/dev/nvidiactl) and Vulkan does not show it"
        yield Check("NVIDIA", "missing", detail, _NVIDIA_REMEDY)


def _adapter(adapter: AdapterFacts) -> Iterator[Check]:
    driver = f", {adapter.driver}" if adapter.driver else ""
    detail = f"{adapter.adapter} ({adapter.kind}, {adapter.backend}{driver}){_taken(adapter)}"
    yield Check(adapter.name, "ok", detail)
    mesa = _old_mesa(adapter)
    if mesa is not None:
        detail = f"Mesa {mesa}'s software driver (lavapipe) is slow"
        yield Check("  driver", "note", detail, _MESA_REMEDY)
    if adapter.packed_dot:
        yield Check("  packed int8 dot", "missing", adapter.packed_dot, _UPDATE_DRIVER)
    else:
        yield Check("  packed int8 dot", "ok", "dot4I8Packed compiles and is right")
    for feature, without in _FEATURES.items():
        # wgpu-native says subgroup and Dawn subgroups.
        if {feature, f"{feature}s"} & set(adapter.features):
            yield Check(f"  {feature}", "ok", "yes")
        else:
            yield Check(f"  {feature}", "note", f"no: {without}")
    yield _limits(adapter)


def _vulkan_adapter(adapter: AdapterFacts) -> Iterator[Check]:
    detail = f"{adapter.adapter} ({adapter.kind}, {adapter.backend}, {adapter.driver})"
    if adapter.trial:
        yield Check(adapter.name, "note", f"{detail}: {adapter.trial}", _UPDATE_DRIVER)
        return
    yield Check(adapter.name, "ok", f"{detail}{_taken(adapter)}; a trial kernel runs and is right")
    shapes = [feature for feature in adapter.features if "->" in feature]
    units = ", ".join(shapes) or "none that Vulkan shows; the dot-product kernels serve"
    yield Check("  matrix units", "ok", units)
    yield Check("  subgroups", "ok", f"{adapter.subgroup_size} threads")
    if adapter.timestamp_bits:
        yield Check("  timestamps", "ok", f"{adapter.timestamp_bits} bits")
    else:
        yield Check("  timestamps", "note", f"no: {_FEATURES['timestamp-query']}")
    memory = "shared with the host" if adapter.unified else "its own, reached by copies"
    yield Check("  memory", "ok", memory)


def _taken(adapter: AdapterFacts) -> str:
    return "; device='auto' takes it" if adapter.automatic else ""


def _limits(adapter: AdapterFacts) -> Check:
    amounts = [
        f"{_amount(limit, adapter.limits.get(limit, 0))} {meaning}"
        for limit, (_, meaning) in _LIMITS.items()
    ]
    low = [
        meaning
        for limit, (smallest, meaning) in _LIMITS.items()
        if adapter.limits.get(limit, 0) < smallest
    ]
    if not low:
        return Check("  limits", "ok", ", ".join(amounts))
    detail = f"{', '.join(amounts)}; below WebGPU's own minimum: {', '.join(low)}"
    return Check("  limits", "note", detail, "Some programs will be refused; update the driver.")


def _environment(facts: Facts) -> Iterator[Check]:
    if facts.render_node_refused:
        detail = "the GPU's device files (/dev/dri/renderD*) may not be opened by this user"
        yield Check("permissions", "missing", detail, "sudo usermod -aG render,video $USER")


def _extras(facts: Facts) -> Iterator[Check]:
    for extra, packages in _EXTRAS.items():
        asked = facts.requirements.get(extra, {})
        absent = [name for name in packages if facts.packages.get(name) is None]
        misfits = _misfits(facts, extra, packages)
        problems = [
            f"{name} {facts.packages[name]} does not fit {name}{asked[name]}" for name in misfits
        ]
        problems += [f"{', '.join(absent)} not installed"] if absent else []
        if problems:
            detail = f"{'; '.join(problems)}: {_PURPOSE[extra]}"
            wanted = [f"nybble[{extra}]"]
            if misfits:
                wanted = [f"{name}{asked.get(name, '')}" for name in (*misfits, *absent)]
            remedy = " ".join(f'"{requirement}"' for requirement in wanted)
            yield Check(f"extra [{extra}]", "note", detail, f"pip install {remedy}")
        else:
            versions = ", ".join(f"{name} {facts.packages[name]}" for name in packages)
            yield Check(f"extra [{extra}]", "ok", versions)


def _misfits(facts: Facts, extra: str, packages: Sequence[str]) -> list[str]:
    """Return which installed packages have another version than nybble asks for."""
    asked = facts.requirements.get(extra, {})
    versions = {name: facts.packages.get(name) for name in packages if name in asked}
    return [name for name, found in versions.items() if found and not satisfies(found, asked[name])]


def driver_remedy(system: str, distribution: str, variables: Mapping[str, str]) -> str:
    """Return how to get a driver on a system, by what :class:`Facts` has of it."""
    remedy = _driver_remedy(system, distribution)
    if system in ("Darwin", "Windows") or not variables:
        return remedy
    # The drivers may all be there: the loader looks at no others than those that are named.
    named = " and ".join(f"{name}={value}" for name, value in variables.items())
    return (
        f"Correct or unset {named}, which tells Vulkan to use those drivers alone. "
        f"If none is found without: {remedy}"
    )


def _driver_remedy(system: str, distribution: str) -> str:
    if system == "Darwin":
        return "Metal is part of macOS: run outside a virtual machine, on macOS 11 or newer."
    if system == "Windows":
        return "Install the GPU maker's driver (Direct3D 12 or Vulkan), and restart."
    if "debian" in distribution or "ubuntu" in distribution:
        return (
            "sudo apt-get install libvulkan1 mesa-vulkan-drivers "
            "(AMD, Intel and a software adapter; for NVIDIA, its own driver)."
        )
    return "Install the Vulkan loader and your GPU's Vulkan driver (Mesa, or NVIDIA's own)."


def _old_mesa(adapter: AdapterFacts) -> str | None:
    """Return the version of a lavapipe that is slow, else None."""
    version = re.search(r"Mesa (\d+)\.([\d.]+)", adapter.driver)
    if version is None or "llvmpipe" not in adapter.adapter or int(version[1]) >= 25:
        return None
    return f"{version[1]}.{version[2]}"


def _text(adapter: AdapterFacts) -> str:
    return f"{adapter.adapter} {adapter.driver}".lower()


def _amount(limit: str, value: int) -> str:
    if not limit.endswith("-size"):
        return str(value)
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value} bytes"


_EXTRAS = {
    "torch": ("torch",),
    "export": ("torch", "torchao", "executorch"),
}
_PURPOSE = {
    "torch": "needed to pass torch tensors, not for numpy arrays",
    "export": "needed to make .pte files, not to run them",
}
_WITHOUT_VULKAN = "Not needed: programs run through WebGPU as well."
_UPDATE_DRIVER = "Update the GPU's driver; if it is new, please report this with the line above."
_MESA_REMEDY = (
    "Mesa 25 is 3 to 7 times faster; on Debian 12, with bookworm-backports enabled: "
    "sudo apt-get install -t bookworm-backports mesa-vulkan-drivers"
)
_NVIDIA_REMEDY = (
    "Install NVIDIA's Vulkan driver (libnvidia-gl) and libvulkan1; start a container with "
    "NVIDIA_DRIVER_CAPABILITIES=compute,graphics,utility."
)
