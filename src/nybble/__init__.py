"""Runs quantized PyTorch programs on any GPU, with the same integer codes everywhere."""

from nybble.devices import DeviceInfo, devices
from nybble.errors import (
    ContractError,
    DeviceError,
    DeviceLostError,
    NybbleError,
    OutOfDeviceMemoryError,
    ProgramFormatError,
    UnsupportedProgramError,
)
from nybble.graph import TensorSpec
from nybble.profile import Profile
from nybble.program import Method, Program, load
from nybble.verify import VerifyReport

__version__ = "0.1.0"

__all__ = [
    "ContractError", "DeviceError", "DeviceInfo", "DeviceLostError", "Method", "NybbleError",
    "OutOfDeviceMemoryError", "Profile", "Program", "ProgramFormatError", "TensorSpec",
    "UnsupportedProgramError", "VerifyReport", "devices", "load",
]  # fmt: skip
