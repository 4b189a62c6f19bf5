"""Arrays of callers to and from numpy: DLPack in, the same kind out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nybble.contract import Array, DType
from nybble.errors import ContractError
from nybble.graph import TensorSpec

__all__ = ["from_caller", "to_caller"]


def from_caller(value: Any, spec: TensorSpec, target: DType) -> Array:
    """A caller's array as a contiguous numpy array of the graph's element type.

    Strided, channels-last and read-only arrays are converted by their logical order, never
    reinterpreted. int64 is narrowed to int32 where the program computes in int32.

    Raises:
        ContractError: another rank, shape or element type than ``spec``, or an integer that
            does not fit.
    """
    array = _to_numpy(value, spec)
    if array.dtype.newbyteorder("=").name != spec.dtype:
        raise ContractError(
            f"{spec.name}: expected {spec.dtype}, received {array.dtype.name}; convert it first, "
            f"for example with .astype('{spec.dtype}') or .to(torch.{spec.dtype})"
        )
    if spec.dynamic and array.ndim == len(spec.shape):
        if any(size > most for size, most in zip(array.shape, spec.shape, strict=True)):
            raise ContractError(
                f"{spec.name}: too large: expected at most {list(spec.shape)}, received "
                f"{list(array.shape)}; the program was exported for sizes up to these"
            )
    elif array.shape != spec.shape:
        kind = "rank" if array.ndim != len(spec.shape) else "shape"
        raise ContractError(
            f"{spec.name}: wrong {kind}: expected {list(spec.shape)}, received "
            f"{list(array.shape)}; the program was exported for this shape alone"
        )
    return np.ascontiguousarray(_narrow(array, spec, target)).reshape(array.shape)


def to_caller(results: Sequence[Array], specs: Sequence[TensorSpec], given: Sequence[Any]) -> Any:
    """Results in the program's element types, of the same kind as the inputs given.

    One result comes as itself, several as a tuple.
    """
    convert = _exporter(given)
    outputs = tuple(
        convert(result.astype(spec.dtype, copy=False))
        for result, spec in zip(results, specs, strict=True)
    )
    return outputs[0] if len(outputs) == 1 else outputs


def _to_numpy(value: Any, spec: TensorSpec) -> Array:
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    torch = sys.modules.get("torch")
    if hasattr(value, "__dlpack__"):
        try:
            if torch is not None and isinstance(value, torch.Tensor):
                value = value.detach().cpu()
            return np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise ContractError(
                f"{spec.name}: this {type(value).__name__} cannot be read: {error}; "
                "pass a numpy array or a CPU tensor"
            ) from error
    if hasattr(value, "__array__"):
        return np.asarray(value)
    raise ContractError(
        f"{spec.name}: expected an array of {spec.dtype}{list(spec.shape)}, "
        f"received {type(value).__name__}"
    )


def _narrow(array: Array, spec: TensorSpec, target: DType) -> Array:
    if array.dtype == target.numpy:
        return array
    with np.errstate(over="ignore", invalid="ignore"):
        narrowed = array.astype(target.numpy)
    if array.dtype.kind in "iu" and not np.array_equal(narrowed, array):
        raise ContractError(
            f"{spec.name}: holds integers beyond {target}, in which the program computes"
        )
    return narrowed


def _exporter(given: Sequence[Any]) -> Callable[[Array], Any]:
    """How to return a numpy array as the kind of the first input that is not numpy's."""
    for value in given:
        if isinstance(value, (np.ndarray, np.generic)) or not hasattr(value, "__dlpack__"):
            continue
        module = sys.modules.get(type(value).__module__.split(".")[0])
        if hasattr(module, "from_dlpack"):
            exporter: Callable[[Array], Any] = module.from_dlpack  # type: ignore[union-attr]
            return exporter
    return lambda array: array
