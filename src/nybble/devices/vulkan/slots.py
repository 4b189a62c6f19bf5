"""A slot is what one run in flight needs for itself: staging memory and command buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nybble.contract import Array
from nybble.contract.layouts import Words
from nybble.plan import Place

from .memory import Allocation, Use
from .segments import Segment

if TYPE_CHECKING:
    from .device import VulkanDevice
    from .executable import VulkanExecutable

__all__ = ["Slot", "unpacked"]


class Slot:
    """Staging for the values of one segment at a time, the host waiting between segments."""

    def __init__(self, executable: VulkanExecutable, segments: Sequence[Segment]) -> None:
        self._executable = executable
        device = executable.device
        self._upload = _staging(device, "upload", max(s.upload_bytes for s in segments))
        self._download: Allocation | None = None
        self._commands: dict[tuple[int, bool], Any] = {}
        self.value = 0
        try:
            self._download = _staging(device, "download", max(s.download_bytes for s in segments))
        except BaseException:
            self.close()
            raise

    def put(self, segment: Segment, arrays: Sequence[Array], *, direct: bool) -> None:
        """Lay down what the segment uploads: in place where ``direct``, else to be copied."""
        rows = zip(segment.uploads, arrays, segment.upload_offsets, strict=True)
        for place, array, offset in rows:
            words = place.layout.pack(array, {})
            if not words.size:
                continue
            target = self._executable.buffers[place.buffer].view if direct else None
            if target is None:
                assert self._upload is not None
                view = self._upload.view
                assert view is not None
                target = view[offset:]
            target[: words.nbytes] = words.reshape(-1).view(np.uint8)

    def commands(self, index: int, segment: Segment, *, direct: bool) -> Any:
        """The segment's command buffer, recorded the first time."""
        key = (index, direct)
        if key not in self._commands:
            self._commands[key] = self._record(segment, direct=direct)
        return self._commands[key]

    def forget_commands(self) -> None:
        """Record anew at the next run."""
        self._commands.clear()

    def take(self, segment: Segment) -> list[Array]:
        """What the segment downloaded, copied out; the device must be done with it."""
        results = []
        for place, offset in zip(segment.downloads, segment.download_offsets, strict=True):
            view = None if self._download is None else self._download.view
            if view is None or not place.nbytes:
                results.append(np.zeros(place.value.shape, place.value.dtype.numpy))
            else:
                words = view[offset : offset + place.nbytes].copy().view(np.uint32)
                results.append(unpacked(place, words))
        return results

    def close(self) -> None:
        """Free the staging memory; the command buffers go with their pool."""
        device = self._executable.device
        if self._upload is not None:
            device.memory("upload").free(self._upload)
        if self._download is not None:
            device.memory("download").free(self._download)
        self._upload = self._download = None

    def _record(self, segment: Segment, *, direct: bool) -> Any:
        executable = self._executable
        recorder = executable.pool.record()
        if not direct and self._upload is not None:
            for place, offset in zip(segment.uploads, segment.upload_offsets, strict=True):
                target = executable.buffers[place.buffer]
                recorder.copy(self._upload, target, [(offset, 0, place.nbytes)])
            recorder.barrier()
        recorder.dispatch(executable.bound[step] for step in segment.steps)
        if self._download is not None:
            recorder.barrier()
            for place, offset in zip(segment.downloads, segment.download_offsets, strict=True):
                source = executable.buffers[place.buffer]
                recorder.copy(source, self._download, [(0, offset, place.nbytes)])
        return recorder.end()


def unpacked(place: Place, words: Words) -> Array:
    """The value that ``words`` hold in its layout."""
    assert place.layout.unpack is not None
    return place.layout.unpack(words, place.value.dtype, place.value.shape)


def _staging(device: VulkanDevice, use: Use, size: int) -> Allocation | None:
    return device.memory(use).allocate(size) if size else None
