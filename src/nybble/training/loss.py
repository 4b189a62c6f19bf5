"""Losses: two by name, and any that a caller builds from graph operators."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from nybble.contract import Array
from nybble.errors import ContractError
from nybble.graph import Graph, GraphBuilder, Value

__all__ = ["Loss", "LossFunction", "check_labels", "labels_spec", "loss_seeds"]

LossFunction: TypeAlias = Callable[[GraphBuilder, "tuple[Value, ...]", Value], Value]
"""Receives the builder, the program's outputs and the labels; gives a float32 scalar."""

Loss: TypeAlias = "str | LossFunction"

_NAMES = ("cross_entropy", "mse")


def labels_spec(loss: Loss, graph: Graph, labels: Any = None) -> tuple[str, tuple[int, ...]]:
    """Element type and shape of a batch's labels; for a callable loss, those of ``labels``.

    Raises:
        ContractError: the loss is unknown, or does not fit the program's first output.
    """
    if callable(loss):
        array = _as_array(labels)
        return _narrow_name(array.dtype), array.shape
    if not isinstance(loss, str) or loss not in _NAMES:
        raise ContractError(
            f"loss: expected 'cross_entropy', 'mse' or a function, received {loss!r}"
        )
    output = graph.outputs[0]
    if output.dtype.name != "float32" or not output.shape:
        raise ContractError(
            f"loss {loss!r} needs a float32 output with at least one axis, the program's first "
            f"is {output}; pass a function as loss"
        )
    if loss == "mse":
        return "float32", output.shape
    return "int32", output.shape[:-1]


def _narrow_name(dtype: np.dtype[Any]) -> str:
    narrowed = {"int64": "int32", "float64": "float32"}.get(dtype.name, dtype.name)
    if narrowed not in ("int32", "float32"):
        raise ContractError(f"labels: expected numbers, received {dtype.name}")
    return narrowed


def loss_seeds(
    b: GraphBuilder, loss: Loss, outputs: tuple[Value, ...], labels: Value
) -> tuple[Value, dict[Value, Value]]:
    """The loss, and the gradients with which differentiation begins."""
    if callable(loss):
        value = loss(b, outputs, labels)
        if not isinstance(value, Value) or value.dtype.name != "float32" or value.shape:
            raise ContractError(
                f"the loss function must return a float32 scalar of the graph, received {value}"
            )
        return value, {value: b.constant(np.float32(1))}
    first = outputs[0]
    if loss == "mse":
        error = b.math.sub(first, labels)
        share = 2 / max(1, math.prod(first.shape))
        return b.math.mean(b.math.square(error)), {first: b.math.mul(error, share)}
    classes = first.shape[-1]
    rows = math.prod(first.shape[:-1])
    flat = b.math.reshape(labels, (rows,))
    losses, slopes = b.call(
        "nybble.cross_entropy.default",
        logits=b.math.reshape(first, (rows, classes)),
        labels=flat,
        weight=b.call("nybble.valid_weight.default", labels=flat),
    )
    return b.math.sum(losses), {first: b.math.reshape(slopes, first.shape)}


def check_labels(
    loss: Loss, labels: Any, dtype: str, shape: tuple[int, ...], classes: int
) -> Array:
    """``labels`` as the graph takes them.

    Raises:
        ContractError: another shape or kind of number, or a class that does not exist.
    """
    array = _as_array(labels)
    if array.shape != shape:
        raise ContractError(_wrong_shape(loss, array.shape, shape, classes))
    wanted = np.dtype(dtype).kind
    if (array.dtype.kind in "iu") != (wanted == "i") or array.dtype.kind not in "iuf":
        raise ContractError(
            f"labels: expected {dtype}, received {array.dtype.name}; convert them first, for "
            f"example with .astype('{dtype}')"
        )
    if loss == "cross_entropy" and array.size and int(array.max()) >= classes:
        at = np.unravel_index(int(array.argmax()), array.shape)
        raise ContractError(
            f"labels: {int(array.max())} at {[int(i) for i in at]} is no class; the program's "
            f"output has {classes}, 0 to {classes - 1} (negative labels are ignored)"
        )
    if wanted == "i":
        array = _within_int32(array, negative_counts=loss != "cross_entropy")
    return np.ascontiguousarray(array, np.dtype(dtype))


def _as_array(labels: Any) -> Array:
    try:
        array = np.asarray(labels)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ContractError(f"labels: expected an array of numbers ({error})") from error
    if array.dtype == object:
        kind = type(labels).__name__
        raise ContractError(f"labels: expected an array of numbers, received {kind}")
    return array


def _wrong_shape(
    loss: Loss, received: tuple[int, ...], shape: tuple[int, ...], classes: int
) -> str:
    """What is wrong: the form that the loss takes, or only how many rows there are."""
    told = f"shape {list(shape)}, received {list(received)}"
    if len(received) == len(shape) and received[1:] == shape[1:]:
        return f"labels: expected {told}; the program was exported for this batch alone"
    if loss == "mse":
        return f"labels: mse takes a value for each of the first output's, {told}"
    if loss != "cross_entropy":
        return f"labels: expected {told}; those of the first batch decide the shape"
    advice = ""
    if received == (*shape, classes):
        advice = "; of one-hot labels take the classes' numbers, labels.argmax(-1)"
    elif math.prod(received) == math.prod(shape):
        sizes = ", ".join(map(str, shape))
        advice = f"; the same numbers in that shape are labels.reshape({sizes})"
    return (
        "labels: cross_entropy takes one class a row of the first output, an integer: expected "
        f"{told}{advice}"
    )


def _within_int32(array: Array, *, negative_counts: bool) -> Array:
    """Integers that keep their meaning as int32: negative classes are all ignored, so are -1."""
    limits = np.iinfo(np.int32)
    beyond = array[(array > limits.max) | (array < limits.min)]
    if negative_counts and beyond.size:
        raise ContractError(
            f"labels: expected integers of 32 bits, received {int(beyond[0])}; make them smaller"
        )
    return array if negative_counts else np.maximum(array, -1)
