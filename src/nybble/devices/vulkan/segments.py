"""Cuts a plan where the host runs a call: what goes up, what is dispatched, what comes down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nybble.plan import Dispatch, HostCall, Place, Plan

__all__ = ["Segment", "cut_segments"]

_ALIGNMENT = 16


@dataclass(frozen=True)
class Segment:
    """Steps that one command buffer holds.

    Args:
        uploads: values that the host gives before it.
        steps: indices of the plan's steps, all dispatches.
        downloads: values that the host takes after it.
        host: the call that the host runs then; None after the last segment.
    """

    uploads: tuple[Place, ...]
    steps: tuple[int, ...]
    downloads: tuple[Place, ...]
    host: HostCall | None
    upload_offsets: tuple[int, ...] = field(init=False)
    download_offsets: tuple[int, ...] = field(init=False)
    upload_bytes: int = field(init=False)
    download_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        for side, places in (("upload", self.uploads), ("download", self.downloads)):
            offsets, total = _staged(places)
            put(self, f"{side}_offsets", offsets)
            put(self, f"{side}_bytes", total)


def cut_segments(plan: Plan) -> tuple[Segment, ...]:
    """A segment before each host call, and one at the end."""
    segments: list[Segment] = []
    uploads, steps = plan.inputs, []
    for index, step in enumerate(plan.steps):
        if isinstance(step, Dispatch):
            steps.append(index)
        else:
            segments.append(Segment(uploads, tuple(steps), tuple(step.reads.values()), step))
            uploads, steps = step.writes, []
    return (*segments, Segment(uploads, tuple(steps), plan.outputs, None))


def _staged(places: Sequence[Place]) -> tuple[tuple[int, ...], int]:
    """Where each value lies in a staging buffer, and the bytes of all."""
    offsets, total = [], 0
    for place in places:
        offsets.append(total)
        total += -(-place.nbytes // _ALIGNMENT) * _ALIGNMENT
    return tuple(offsets), total
