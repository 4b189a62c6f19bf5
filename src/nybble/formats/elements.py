"""Element types and shapes of stored tensors, and how many bytes they take."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from nybble.errors import ProgramFormatError

__all__ = [
    "PROGRAM_DTYPES",
    "VULKAN_DTYPES",
    "VULKAN_DTYPE_UNSET",
    "byte_count",
    "checked_shape",
    "dtype_named",
]

_BITS: Mapping[str, int] = MappingProxyType(
    {
        "bool": 8,
        "uint8": 8,
        "int8": 8,
        "uint16": 16,
        "int16": 16,
        "uint32": 32,
        "int32": 32,
        "uint64": 64,
        "int64": 64,
        "float16": 16,
        "bfloat16": 16,
        "float32": 32,
        "float64": 64,
        "qint8": 8,
        "quint8": 8,
        "qint32": 32,
        "quint4x2": 4,
        "quint2x4": 2,
        "bits16": 16,
        "float8_e5m2": 8,
        "float8_e4m3fn": 8,
        "float8_e5m2fnuz": 8,
        "float8_e4m3fnuz": 8,
    }
)

#: Scalar type codes of ``.pte`` and ``.ptd`` files.
PROGRAM_DTYPES: Mapping[int, str] = MappingProxyType(
    {
        0: "uint8",
        1: "int8",
        2: "int16",
        3: "int32",
        4: "int64",
        5: "float16",
        6: "float32",
        7: "float64",
        11: "bool",
        12: "qint8",
        13: "quint8",
        14: "qint32",
        15: "bfloat16",
        16: "quint4x2",
        17: "quint2x4",
        22: "bits16",
        23: "float8_e5m2",
        24: "float8_e4m3fn",
        25: "float8_e5m2fnuz",
        26: "float8_e4m3fnuz",
        27: "uint16",
        28: "uint32",
        29: "uint64",
    }
)

#: Data type codes of Vulkan delegates.
VULKAN_DTYPES: Mapping[int, str] = MappingProxyType(
    {
        0: "bool",
        1: "uint8",
        2: "int8",
        3: "int32",
        4: "float16",
        5: "float32",
        6: "float64",
        7: "int64",
    }
)
VULKAN_DTYPE_UNSET = 127

_RANK_AT_MOST = 8
_SIZE_AT_MOST = 2**31 - 1
_BYTES_AT_MOST = 2**40


def dtype_named(code: int, codes: Mapping[int, str], where: str) -> str:
    """The element type with this code; raises :class:`ProgramFormatError` if there is none."""
    if code not in codes:
        raise ProgramFormatError(
            f"{where}: element type {code} is unknown, expected one of "
            f"{', '.join(f'{known} ({name})' for known, name in codes.items())}."
        )
    return codes[code]


def byte_count(dtype: str, shape: Sequence[int]) -> int:
    """Bytes of a dense tensor; types of less than a byte are packed, the last byte filled up."""
    return (math.prod(shape) * _BITS[dtype] + 7) // 8


def checked_shape(
    sizes: tuple[int, ...], dtype: str, where: str, *, meaningful: bool = True
) -> tuple[int, ...]:
    """``sizes``, once rank, each size and (if they are ``meaningful``) the bytes are in bounds.

    Raises :class:`ProgramFormatError` otherwise.
    """
    if len(sizes) > _RANK_AT_MOST:
        raise ProgramFormatError(
            f"{where}: the tensor has {len(sizes)} dimensions, expected at most {_RANK_AT_MOST}."
        )
    for axis, size in enumerate(sizes):
        if not 0 <= size <= _SIZE_AT_MOST:
            raise ProgramFormatError(
                f"{where}: dimension {axis} has size {size}, expected 0 to {_SIZE_AT_MOST}."
            )
    # Empty dimensions count as one: strides of an absurd empty tensor would overflow as well.
    if meaningful and byte_count(dtype, [max(size, 1) for size in sizes]) > _BYTES_AT_MOST:
        raise ProgramFormatError(
            f"{where}: a {dtype} tensor of shape {list(sizes)} takes more than the "
            f"{_BYTES_AT_MOST} bytes that a program may declare."
        )
    return sizes
