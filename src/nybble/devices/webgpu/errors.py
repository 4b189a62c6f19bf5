"""Turns what wgpu raises into nybble's errors."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nybble.errors import DeviceError, DeviceLostError, NybbleError, OutOfDeviceMemoryError

__all__ = ["device_errors"]

_OUT_OF_MEMORY = re.compile(
    r"(out[ _]of[ _](\w+[ _])?|not enough )memory|outofmemory", re.IGNORECASE
)
"""How wgpu-native, Dawn and Vulkan itself say it; some of them as an error of validation."""


@contextmanager
def device_errors(name: str, answers: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Raise wgpu's errors as :class:`DeviceError` and its kinds, naming the device.

    ``answers`` tells whether the device still works: not every error of a lost one says so.
    """
    try:
        yield
    except NybbleError:
        raise
    except Exception as error:
        if not isinstance(error, MemoryError) and not _is_from_wgpu(error):
            raise
        # The frames hold exported memoryviews, which Python 3.11's collector crashes on in a cycle.
        traceback.clear_frames(error.__traceback__)
        text = str(error).strip() or type(error).__name__
        reason = _why_out_of_memory(text)
        if isinstance(error, MemoryError) and reason is None:
            raise OutOfDeviceMemoryError(f"{name}: the host is out of memory: {text}") from error
        if reason is not None:
            raise OutOfDeviceMemoryError(
                f"{name} is out of memory: {reason}. Use a smaller batch, close other programs, "
                "or use device='host'"
            ) from error
        if "lost" in text.lower() or not answers():
            raise DeviceLostError(
                f"{name} was lost: {text}. Load the program again to go on"
            ) from error
        raise DeviceError(f"{name}: {text}") from error


def _why_out_of_memory(text: str) -> str | None:
    """The line of an error's text that says that a device's memory ran out, if one does."""
    lines = (line.strip().rstrip(".") for line in text.splitlines())
    return next((line for line in lines if _OUT_OF_MEMORY.search(line)), None)


def _is_from_wgpu(error: Exception) -> bool:
    if type(error).__module__.split(".")[0] in ("wgpu", "wgpudawn"):
        return True
    frame = error.__traceback__
    while frame is not None:
        if str(frame.tb_frame.f_globals.get("__name__", "")).split(".")[0] in ("wgpu", "wgpudawn"):
            return True
        frame = frame.tb_next
    return False
