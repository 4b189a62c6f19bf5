"""Replaces constants in the bytes of a program, and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nybble import formats
from nybble.contract import Array
from nybble.errors import NybbleError, ProgramFormatError

__all__ = ["Replacement", "rewrite_program"]


@dataclass(frozen=True, eq=False)
class Replacement:
    """A constant as the program holds it (a view of its bytes), and its new content."""

    name: str
    stored: Array
    content: Array


def rewrite_program(
    data: bytes | bytearray | memoryview, replacements: Sequence[Replacement]
) -> bytes:
    """The program with constants replaced in place.

    A constant that is stored under the SHA-256 of its bytes is renamed everywhere to the digest of
    its new bytes, which has the same length; every other byte stays.

    Raises:
        NybbleError: a constant is not in these bytes, or two layers share one and differ now.
    """
    base = np.frombuffer(data, np.uint8)
    result = base.copy()
    written: dict[int, Replacement] = {}
    renamed: dict[bytes, bytes] = {}
    for item in replacements:
        at = _offset(base, item)
        other = written.setdefault(at, item)
        if not np.array_equal(other.content, item.content):
            raise NybbleError(
                f"{other.name} and {item.name} share one stored weight, since they were equal when "
                "the program was exported, and differ after training. Export the program with "
                "different weights, or train only one of them"
            )
        old, new = np.ascontiguousarray(item.stored), np.ascontiguousarray(item.content)
        result[at : at + new.nbytes] = new.reshape(-1).view(np.uint8)
        renamed[_digest(old)] = _digest(new)
    text = _renamed(result.tobytes(), renamed)
    try:
        formats.read_program(text)
    except ProgramFormatError as error:
        raise NybbleError(
            f"the program with new weights would not be whole ({error}); it was not written"
        ) from error
    return text


def _digest(array: Array) -> bytes:
    return hashlib.sha256(array.tobytes()).hexdigest().encode()


def _renamed(text: bytes, names: dict[bytes, bytes]) -> bytes:
    """``text`` with names replaced at once, so that a new name is never taken for an old one."""
    places = []
    for old, new in names.items():
        at = text.find(old)
        while at >= 0:
            places.append((at, new))
            at = text.find(old, at + 1)
    result = bytearray(text)
    for at, new in places:
        result[at : at + len(new)] = new
    return bytes(result)


def _offset(base: Array, item: Replacement) -> int:
    """Where a constant lies in the program, of whose bytes it is a view."""
    start = int(base.__array_interface__["data"][0])
    at = int(item.stored.__array_interface__["data"][0]) - start
    whole = item.stored.flags.c_contiguous and item.stored.nbytes == item.content.nbytes
    if not (whole and 0 <= at <= base.size - item.stored.nbytes):
        raise NybbleError(
            f"the weight of {item.name} is not stored in the program itself (a .ptd file holds "
            "it?), so it cannot be replaced there; export the program without external constants"
        )
    return at
