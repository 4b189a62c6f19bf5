"""``nybble doctor``: which adapters exist, what they can do, what is missing, how to get it."""

from __future__ import annotations

import platform

from nybble.doctor import checks
from nybble.doctor.checks import Check, Status, judge
from nybble.doctor.facts import AdapterFacts, Facts, distribution, driver_variables, gather
from nybble.doctor.show import show

__all__ = [
    "AdapterFacts", "Check", "Facts", "Status", "driver_remedy", "examine", "gather", "judge",
    "show",
]  # fmt: skip


def examine() -> tuple[Check, ...]:
    """Look at this machine and judge it. Never raises for what it finds; takes some seconds."""
    return judge(gather())


def driver_remedy() -> str:
    """Return how to get a GPU's driver on this machine, without looking for adapters."""
    return checks.driver_remedy(platform.system(), distribution(), driver_variables())
