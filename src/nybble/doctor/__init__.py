"""``nybble doctor``: which adapters exist, what they can do, what is missing, how to get it."""

from __future__ import annotations

from nybble.doctor.checks import Check, Status, judge
from nybble.doctor.facts import AdapterFacts, Facts, gather
from nybble.doctor.show import show

__all__ = ["AdapterFacts", "Check", "Facts", "Status", "examine", "gather", "judge", "show"]


def examine() -> tuple[Check, ...]:
    """Look at this machine and judge it. Never raises for what it finds; takes some seconds."""
    return judge(gather())
