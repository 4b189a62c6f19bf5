"""Every exception that nybble raises on purpose, one hierarchy under :class:`NybbleError`."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "ContractError",
    "DeviceError",
    "DeviceLostError",
    "NybbleError",
    "OutOfDeviceMemoryError",
    "ProgramFormatError",
    "UnsupportedProgramError",
]


class NybbleError(Exception):
    """Base of all errors that nybble raises on purpose."""


class ProgramFormatError(NybbleError):
    """The bytes are not a well-formed program: truncated, damaged, or of another kind."""


class UnsupportedProgramError(NybbleError):
    """The program is well formed, but something in it cannot be run here.

    ``calls`` lists every such call, each as one sentence.
    """

    def __init__(self, message: str, calls: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.calls: tuple[str, ...] = tuple(calls)


class ContractError(NybbleError):
    """An argument breaks the declared contract: wrong count, rank, dtype, shape or value."""


class DeviceError(NybbleError):
    """The device cannot do what was asked: no adapter, a missing feature, a failed call."""


class DeviceLostError(DeviceError):
    """The device went away (driver reset, unplugged); load the program again to go on."""


class OutOfDeviceMemoryError(DeviceError):
    """The device has not enough memory, or a tensor exceeds one of its size limits."""
