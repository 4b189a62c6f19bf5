"""Which dispatches must wait for those before them; the others may overlap."""

from __future__ import annotations

from collections.abc import Sequence

from nybble.plan import Dispatch, Region

__all__ = ["barriers_before"]


class _Ranges:
    """Bytes of buffers that were touched since the last barrier."""

    def __init__(self) -> None:
        self._spans: dict[int, list[tuple[int, int]]] = {}

    def meet(self, region: Region) -> bool:
        end = region.offset + region.size
        return any(
            region.offset < stop and start < end
            for start, stop in self._spans.get(region.buffer, ())
        )

    def add(self, region: Region) -> None:
        span = (region.offset, region.offset + region.size)
        self._spans.setdefault(region.buffer, []).append(span)


def barriers_before(dispatches: Sequence[Dispatch]) -> tuple[bool, ...]:
    """Whether each dispatch needs a barrier before it.

    It does where it reads what an earlier one wrote, or writes what an earlier one read or wrote,
    no barrier standing between the two. A region that a kernel changes in place is a write.
    """
    needed: list[bool] = []
    read, written = _Ranges(), _Ranges()
    for dispatch in dispatches:
        waits = any(map(written.meet, (*dispatch.reads, *dispatch.writes))) or any(
            map(read.meet, dispatch.writes)
        )
        if waits:
            read, written = _Ranges(), _Ranges()
        needed.append(waits)
        for region in dispatch.reads:
            read.add(region)
        for region in dispatch.writes:
            written.add(region)
    return tuple(needed)
