"""Inputs drawn at random, for tools that were given none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nybble.arguments import is_integer
from nybble.contract import Array
from nybble.errors import ContractError
from nybble.graph import TensorSpec

__all__ = ["random_inputs"]

# Indices into a table are the usual integer inputs: small ones fall inside most tables.
_RANDOM_INTEGERS = 8


def random_inputs(specs: Sequence[TensorSpec], seed: int) -> tuple[Array, ...]:
    """Draw an input for each of ``specs``: floats normal, int8 and uint8 over their whole range.

    Raises:
        ContractError: the seed is no integer from 0 on.
    """
    if not is_integer(seed, least=0):
        raise ContractError(f"seed: expected an integer from 0 on, received {seed!r}")
    generator = np.random.default_rng(seed)
    return tuple(_random_array(spec, generator) for spec in specs)


def _random_array(spec: TensorSpec, generator: np.random.Generator) -> Array:
    dtype = np.dtype(spec.dtype)
    if dtype.kind == "f":
        return generator.standard_normal(spec.shape).astype(dtype)
    if dtype.kind == "b":
        return generator.integers(0, 2, spec.shape).astype(dtype)
    if dtype.itemsize == 1:
        limits = np.iinfo(dtype)
        return generator.integers(limits.min, limits.max, spec.shape, dtype, endpoint=True)
    return generator.integers(0, _RANDOM_INTEGERS, spec.shape, dtype)
