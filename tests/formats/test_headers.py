"""Files of another kind, and bad fixed headers of the three containers."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Any

import pytest

from nybble.errors import ProgramFormatError
from nybble.formats import read_program

if TYPE_CHECKING:
    from tests.formats.conftest import Files

FLOATS = struct.pack("<4f", 1.0, 2.0, 3.0, 4.0)


def refused(data: bytes, message: str, *external: bytes) -> None:
    """Reading must fail with a :class:`ProgramFormatError` that contains the message."""
    with pytest.raises(ProgramFormatError, match=re.escape(message)):
        read_program(data, external)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "this looks like an empty file"),
        (b"\0" * 64, "this looks like zeros only"),
        (b"PK\x03\x04" + bytes(60), "a zip archive, as torch.save and torch.export.save write"),
        (b"\x80\x02}q\x00.padding", "a Python pickle"),
        (b"import torch\n", "a text file that begins 'import torch\\n'"),
        (b"version https://git-lfs.github.com/spec/v1", "git lfs pull"),
        (b"<!DOCTYPE html><html>", "a web page"),
        (b"GGUF" + bytes(20), "a GGUF model"),
        (struct.pack("<Q", 20) + b'{"a":{}}', "a safetensors file"),
        (b"\0\0\0\0VH00" + bytes(40), "a Vulkan delegate without its program"),
        (b"\x1c\0\0\0TFL3" + bytes(40), "a TensorFlow Lite model"),
        (b"\x1c\0\0\0ET99" + bytes(40), "an ExecuTorch program of another format version"),
        (b"\x9c\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b", "the bytes 9c 01 02 03 04 05 06 07"),
    ],
)
def test_a_file_of_another_kind_is_named(data: bytes, message: str) -> None:
    """A file that is no program is refused, saying what it looks like and what was expected."""
    refused(data, message)
    refused(data, "the program: expected an ExecuTorch program (.pte), which has 'ET12' at byte 4")


def test_a_ptd_is_no_program_and_a_program_no_ptd(files: Files) -> None:
    """The two kinds of file in each other's place are told apart by name."""
    program, external = files.value("Int", {}), files.ptd([], [b"x"])
    refused(external, "this looks like an ExecuTorch external data file (.ptd)")
    refused(program, "external data file 1: expected an external data file", external, program)


def test_every_truncation_of_a_real_program_is_refused(files: Files) -> None:
    """A program cut short anywhere, even by one byte, does not read."""
    data = files.real()["pointwise.pte"]
    for length in [*range(0, len(data), 17), len(data) - 1]:
        with pytest.raises(ProgramFormatError):
            read_program(data[:length])


@pytest.mark.parametrize(
    ("at", "code", "number", "message"),
    [
        (0, "I", 2**31, "table Program at byte 2147483648 lies at bytes"),
        (12, "I", 23, "the header declares a length of 23 bytes, expected 24 to"),
        (12, "I", 2**32 - 1, "the header declares a length of 4294967295 bytes"),
        (16, "Q", 2**64 - 1, "the program table lies at bytes 0 to 18446744073709551615"),
        (16, "Q", 0, "the root table Program"),
        (24, "Q", 8, "the segment data lies at bytes 8 to"),
        (24, "Q", 2**63, "the segment data lies at bytes 9223372036854775808 to"),
        (32, "Q", 2**40, "the segment data lies at bytes"),
    ],
)
def test_a_bad_program_header_is_refused(
    files: Files, at: int, code: str, number: int, message: str
) -> None:
    """Each field of the extended header is checked against the file's size."""
    data = bytearray(files.real()["pointwise.pte"])
    struct.pack_into(f"<{code}", data, at, number)
    refused(bytes(data), message)


@pytest.mark.parametrize(
    ("at", "code", "number", "message"),
    [
        (8, "4s", b"FH02", "expected the header mark 'FH01' at byte 8"),
        (12, "I", 39, "the header declares a length of 39 bytes, expected 40 to"),
        (16, "Q", 0, "the table lies at bytes 0 to"),
        (24, "Q", 2**50, "the table lies at bytes 48 to"),
        (32, "Q", 0, "the segment data lies at bytes 0 to"),
        (40, "Q", 17, "the segment data lies at bytes"),
    ],
)
def test_a_bad_external_header_is_refused(
    files: Files, at: int, code: str, number: Any, message: str
) -> None:
    """Each field of a .ptd header is checked against the file's size."""
    data = bytearray(files.ptd([{"key": "w", "segment_index": 0}], [FLOATS]))
    struct.pack_into(f"<{code}", data, at, number)
    refused(files.value("Int", {}), message, bytes(data))


@pytest.mark.parametrize(
    ("at", "code", "number", "message"),
    [
        (4, "4s", b"XX00", "expected a Vulkan delegate, which has 'VH00' at byte 4"),
        (8, "H", 29, "the header declares a length of 29 bytes, expected 30 to"),
        (8, "H", 2**16 - 1, "the header declares a length of 65535 bytes"),
        (10, "I", 16, "the graph table lies at bytes 16 to"),
        (10, "I", 33, "expected a Vulkan graph, which has 'VK00' at byte 4"),
        (14, "I", 2**32 - 1, "the graph table lies at bytes 32 to"),
        (18, "I", 32, "the constant data lies at bytes 32 to"),
        (18, "I", 2**32 - 1, "the constant data lies at bytes 4294967295 to"),
        (22, "Q", 2**64 - 1, "the constant data lies at bytes"),
    ],
)
def test_a_bad_delegate_header_is_refused(
    files: Files, at: int, code: str, number: Any, message: str
) -> None:
    """Each field of a delegate's header is checked; the error names method and delegate."""
    blob = bytearray(files.blob({"values": []}, FLOATS))
    struct.pack_into(f"<{code}", blob, at, number)
    refused(files.delegated(bytes(blob)), message)
    refused(
        files.delegated(bytes(blob)),
        "the program, method 'forward', delegate 0 ('VulkanBackend'): ",
    )
