"""Which versions nybble itself asks for, and whether an installed one fits."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from itertools import zip_longest
from typing import TypeAlias

__all__ = ["Requirements", "own_requirements", "read_requirements", "satisfies"]

Requirements: TypeAlias = Mapping[str, Mapping[str, str]]
"""Version bounds of packages by extra, "" for what is always needed: ">=2.13,<2.14"."""

_REQUIREMENT = re.compile(r"^([\w.-]+)\s*(?:\[[^\]]*\])?\s*\(?([^;()]*)\)?\s*(?:;(.*))?$")
_EXTRA = re.compile(r"""^\s*extra\s*==\s*['"]([\w.-]+)['"]\s*$""")
_BOUND = re.compile(r"^\s*(~=|==|!=|<=|>=|<|>)\s*([0-9][0-9.]*?)(\.\*)?\s*$")
_COMPARISONS: Mapping[str, Callable[[int], bool]] = {
    "==": lambda sign: sign == 0,
    "!=": lambda sign: sign != 0,
    "<=": lambda sign: sign <= 0,
    ">=": lambda sign: sign >= 0,
    "<": lambda sign: sign < 0,
    ">": lambda sign: sign > 0,
}


def own_requirements() -> Requirements:
    """What the installed nybble asks for; nothing where it runs from its source."""
    try:
        return read_requirements(metadata.requires("nybble"))
    except metadata.PackageNotFoundError:
        return {}


def read_requirements(lines: Sequence[str] | None) -> Requirements:
    """The bounds in a package's requirements; those of a platform alone are left out."""
    found: dict[str, dict[str, str]] = {}
    for line in lines or ():
        parts = _REQUIREMENT.match(line.strip())
        if parts is None:
            continue
        name, bounds, marker = parts[1], parts[2] or "", parts[3] or ""
        extra = _EXTRA.match(marker)
        if extra is None and marker.strip():
            continue
        # Lower bounds first, as people write them; metadata has them sorted by character.
        ordered = sorted((b.strip() for b in bounds.split(",")), key=lambda b: b.startswith("<"))
        found.setdefault("" if extra is None else extra[1], {})[name] = ",".join(ordered)
    return found


def satisfies(version: str, bounds: str) -> bool:
    """Whether ``version`` fits ``bounds``; where ``packaging`` is absent, by their numbers."""
    try:
        from packaging.specifiers import SpecifierSet
    except ImportError:
        return all(_fits(version, bound) for bound in bounds.split(",") if bound.strip())
    return SpecifierSet(bounds).contains(version, prereleases=True)


def _fits(version: str, bound: str) -> bool:
    parts = _BOUND.match(bound)
    if parts is None:
        return True
    operator, wanted, family = parts[1], _numbers(parts[2]), parts[3] is not None
    ours = _numbers(version)
    if operator == "~=":
        return _order(ours, wanted) >= 0 and ours[: len(wanted) - 1] == wanted[:-1]
    if family:
        ours = ours[: len(wanted)]
    return _COMPARISONS[operator](_order(ours, wanted))


def _numbers(version: str) -> tuple[int, ...]:
    """The release numbers: of "2.13.1+cpu" 2, 13 and 1."""
    release = re.match(r"[0-9]+(?:\.[0-9]+)*", version)
    return tuple(map(int, release[0].split("."))) if release else ()


def _order(one: Sequence[int], other: Sequence[int]) -> int:
    """Negative, 0 or positive as ``one`` is before, at or after ``other``; 2.13 is 2.13.0."""
    pairs = zip_longest(one, other, fillvalue=0)
    return next((a - b for a, b in pairs if a != b), 0)
