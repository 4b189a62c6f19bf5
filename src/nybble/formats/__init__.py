"""Reads program files (``.pte``), external data (``.ptd``) and Vulkan delegates; trusts no byte."""

from __future__ import annotations

from nybble.formats.program_file import (
    DelegateCall,
    DelegateFile,
    DelegateGraph,
    DelegateNode,
    DelegateTensor,
    DelegateValue,
    FileTensor,
    FileTensorList,
    FileValue,
    FreeCall,
    IndexList,
    Instruction,
    JumpFalseCall,
    KernelCall,
    MethodFile,
    MoveCall,
    ProgramFile,
    SymbolicInt,
    ValueList,
)
from nybble.formats.read import read_program

__all__ = [
    "DelegateCall",
    "DelegateFile",
    "DelegateGraph",
    "DelegateNode",
    "DelegateTensor",
    "DelegateValue",
    "FileTensor",
    "FileTensorList",
    "FileValue",
    "FreeCall",
    "IndexList",
    "Instruction",
    "JumpFalseCall",
    "KernelCall",
    "MethodFile",
    "MoveCall",
    "ProgramFile",
    "SymbolicInt",
    "ValueList",
    "read_program",
]
