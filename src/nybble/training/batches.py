"""Data sets cut into batches of the size for which a program was exported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nybble.arguments import is_integer
from nybble.contract import Array
from nybble.errors import ContractError

__all__ = ["shuffled_batches", "whole_batches"]


def shuffled_batches(
    x: Array, labels: Array, rows: int, rng: np.random.Generator
) -> Iterator[tuple[Array, Array]]:
    """One pass over the data in random order; the rows left over at the end are not used.

    Args:
        x: inputs ``[n, ...]``.
        labels: labels ``[n, ...]``.
        rows: rows of a batch.
        rng: draws the order.

    Raises:
        ContractError: the lengths differ, or there is not one batch.
    """
    _check(x, labels, rows)
    _check_generator(rng)
    order = rng.permutation(len(x))
    for start in range(0, len(x) - rows + 1, rows):
        chosen = order[start : start + rows]
        yield x[chosen], labels[chosen]


def whole_batches(x: Array, labels: Array, rows: int) -> Iterator[tuple[Array, Array]]:
    """The data in order; the last batch is filled up with rows whose label is -1, not counted.

    Labels that are not integers cannot be marked so: then rows left over at the end are not used.

    Raises:
        ContractError: the lengths differ, or there is not one batch.
    """
    _check(x, labels, rows)
    for start in range(0, len(x), rows):
        part, known = x[start : start + rows], labels[start : start + rows]
        missing = rows - len(part)
        if missing:
            if labels.dtype.kind not in "iu":
                return
            part = np.concatenate([part, x[:missing]])
            ignored = np.full((missing, *labels.shape[1:]), -1, np.int32)
            known = np.concatenate([known.astype(np.int32), ignored])
        yield part, known


def _check_generator(rng: Any) -> None:
    if not isinstance(rng, np.random.Generator):
        kind = type(rng).__name__
        raise ContractError(f"rng: expected numpy.random.default_rng(seed), received {kind}")


def _check(x: Any, labels: Any, rows: int) -> None:
    for array in (x, labels):
        if not isinstance(array, np.ndarray):
            raise ContractError(
                f"data: expected numpy arrays, received {type(array).__name__}; convert it with "
                "numpy.asarray"
            )
    if not is_integer(rows, least=1):
        raise ContractError(f"rows: expected a positive integer, received {rows!r}")
    if x.ndim == 0 or labels.ndim == 0 or len(x) != len(labels):
        raise ContractError(
            f"data: expected as many labels as inputs, received inputs {list(x.shape)} and "
            f"labels {list(labels.shape)}"
        )
    if len(x) < rows:
        raise ContractError(
            f"data: the program takes batches of {rows}, received {len(x)} rows; add rows, or "
            "export the program for a smaller batch"
        )
