"""Element types: one table with the numpy and WGSL spelling side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["BOOL", "COMPUTED", "DTYPES", "FLOAT32", "INT8", "INT32", "DType", "dtype_of"]


@dataclass(frozen=True)
class DType:
    """An element type.

    ``wgsl`` is the scalar that a kernel's row-major binding holds; types narrower than a word
    are bound as packed ``u32`` words. Types with ``wgsl`` None exist on the host only.
    """

    name: str
    numpy: np.dtype[Any]
    wgsl: str | None

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.numpy.itemsize

    @property
    def per_word(self) -> int:
        """Elements that one 32-bit word holds (1 for types of a word or more)."""
        return max(1, 4 // self.itemsize)

    def __str__(self) -> str:
        return self.name


def _dtype(name: str, wgsl: str | None) -> DType:
    return DType(name, np.dtype(name), wgsl)


DTYPES: dict[str, DType] = {
    dtype.name: dtype
    for dtype in (
        _dtype("float32", "f32"),
        _dtype("int32", "i32"),
        _dtype("uint32", "u32"),
        _dtype("int8", "u32"),
        _dtype("uint8", "u32"),
        _dtype("bool", "u32"),
        _dtype("float16", None),
        _dtype("int16", None),
        _dtype("uint16", None),
        _dtype("float64", None),
        _dtype("int64", None),
        _dtype("uint64", None),
    )
}
COMPUTED = ("float32", "int32", "int8", "uint8", "bool")
"""The element types that operators take and make."""
FLOAT32 = DTYPES["float32"]
INT32 = DTYPES["int32"]
INT8 = DTYPES["int8"]
BOOL = DTYPES["bool"]


def dtype_of(array: np.ndarray[Any, np.dtype[Any]]) -> DType | None:
    """The entry of :data:`DTYPES` for an array, None when nybble has no such type."""
    return DTYPES.get(array.dtype.newbyteorder("=").name)
