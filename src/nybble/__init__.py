"""Runs quantized PyTorch programs on any GPU, with the same integer codes everywhere."""

from nybble.compare_report import CompareReport
from nybble.comparison import compare
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
from nybble.training import AdamW, Constant, Cosine, Linear, NonFiniteError, Trainer
from nybble.verify import VerifyReport

__version__ = "0.1.0"

__all__ = [
    "AdamW", "CompareReport", "Constant", "ContractError", "Cosine", "DeviceError", "DeviceInfo",
    "DeviceLostError", "Linear", "Method", "NonFiniteError", "NybbleError",
    "OutOfDeviceMemoryError", "Profile", "Program", "ProgramFormatError", "TensorSpec", "Trainer",
    "UnsupportedProgramError", "VerifyReport", "compare", "devices", "load",
]  # fmt: skip
