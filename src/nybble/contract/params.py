"""Contract -> bytes: fills a kernel's uniform record, the host side of ``struct Params``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .emit_wgsl import AUTOMATIC_PARAMS
from .kernel import Kernel

__all__ = ["params_dtype", "params_record", "params_values"]

_NUMPY = {"u32": "<u4", "i32": "<i4", "f32": "<f4"}


def params_dtype(kernel: Kernel) -> np.dtype[Any]:
    """The record's numpy type: scalars of 32 bits, padded to 16 bytes at the end."""
    fields = [(name, "<u4") for name in AUTOMATIC_PARAMS]
    fields += [(name, _NUMPY[param.type]) for name, param in kernel.params.items()]
    fields += [(f"padding_{i}", "<u4") for i in range(-len(fields) % 4)]
    return np.dtype(fields)


def params_values(kernel: Kernel, names: Mapping[str, Any]) -> dict[str, Any]:
    """Each declared field's value under ``names``."""
    return {name: param.value.evaluate(names) for name, param in kernel.params.items()}


def params_record(kernel: Kernel, values: Mapping[str, Any], grid_width: int) -> bytes:
    """The bytes of the uniform record.

    Raises:
        OverflowError: a value does not fit its field.
    """
    record = np.zeros((), params_dtype(kernel))
    record["grid_width"] = grid_width
    with np.errstate(over="ignore"):  # a bound beyond float32 is infinite
        for name, value in values.items():
            record[name] = value
    return record.tobytes()
