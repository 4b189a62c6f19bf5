"""Shares buffers between values whose lifetimes do not meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Lifetime", "share_buffers"]


@dataclass(frozen=True)
class Lifetime:
    """A value's size in bytes and the steps, both included, between which it must exist."""

    nbytes: int
    first: int
    last: int

    def meets(self, other: Lifetime) -> bool:
        """Whether the two exist at one step."""
        return self.first <= other.last and other.first <= self.last


def share_buffers(lifetimes: Sequence[Lifetime]) -> tuple[list[int], list[int]]:
    """A buffer for each lifetime, and the buffers' sizes.

    Largest first; each takes the first buffer whose values it never meets. Since sizes only
    shrink, a buffer is as large as its first value and nothing grows.
    """
    order = sorted(range(len(lifetimes)), key=lambda i: (-lifetimes[i].nbytes, lifetimes[i].first))
    members: list[list[Lifetime]] = []
    sizes: list[int] = []
    assigned = [0] * len(lifetimes)
    for index in order:
        life = lifetimes[index]
        free = (
            number
            for number, present in enumerate(members)
            if not any(life.meets(other) for other in present)
        )
        buffer = next(free, len(members))
        if buffer == len(members):
            members.append([])
            sizes.append(life.nbytes)
        members[buffer].append(life)
        assigned[index] = buffer
    return assigned, sizes
