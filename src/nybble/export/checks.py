"""Checks the arguments of an export before the long work starts; needs no torch to be imported."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nybble.errors import NybbleError
from nybble.source import as_path

if TYPE_CHECKING:
    import torch

__all__ = [
    "as_batch",
    "check_choice",
    "check_extra",
    "check_group_size",
    "check_module",
    "check_path",
    "checked_batches",
    "first_line",
]

_PACKAGES = ("torch", "torchao", "executorch")


def first_line(error: BaseException) -> str:
    """What the innermost cause of ``error`` says first."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def check_extra() -> None:
    """Raise NybbleError unless the packages of the extra are installed."""
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        *most, last = missing
        listed = f"{', '.join(most)} and {last}" if most else last
        raise NybbleError(
            f"nybble.export needs {listed}, which {'are' if most else 'is'} not installed: "
            'pip install "nybble[export]"'
        )


def check_choice(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Raise NybbleError unless ``value`` is one of ``allowed``."""
    if value not in allowed:
        listed = ", ".join(repr(choice) for choice in allowed)
        raise NybbleError(f"{name}={value!r} is not supported by export: use one of {listed}.")


def check_group_size(size: object) -> None:
    """Raise NybbleError unless ``size`` is None or a whole number from 1 on."""
    whole = isinstance(size, int) and not isinstance(size, bool) and size >= 1
    if size is not None and not whole:
        raise NybbleError(
            f"group_size={size!r} is not a number of weights: use a whole number such as 32, which "
            "divides the input features of the layers, or None for one scale a row."
        )


def check_path(path: str | os.PathLike[str]) -> Path:
    """``path`` as a Path that can be written; raises NybbleError otherwise."""
    target = as_path(path, "path")
    if target.is_dir():
        raise NybbleError(f"{target} is a folder: give the name of the file to write.")
    if not target.parent.is_dir():
        raise NybbleError(f"{target} cannot be written: the folder {target.parent} does not exist.")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise NybbleError(f"{target} cannot be written: permission denied.")
    return target


def check_module(module: object) -> None:
    """Raise NybbleError unless ``module`` is a torch module, made and not only its class."""
    import torch

    if isinstance(module, torch.nn.Module):
        _refuse_halves(module)
        return
    received, advice = type(module).__name__, ""
    if isinstance(module, type):
        received, advice = f"the class {module.__name__}", "; make an instance of it"
    elif callable(module):
        advice = "; put what it computes into the forward of a module"
    raise NybbleError(f"module: expected a torch.nn.Module, received {received}{advice}.")


def _refuse_halves(module: torch.nn.Module) -> None:
    """Raise NybbleError where parameters or buffers are of a float type that no program has."""
    import torch

    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        if tensor.dtype in (torch.float16, torch.bfloat16):
            raise NybbleError(
                f"{name} of the module has dtype {tensor.dtype}, and float32 is expected: export "
                "module.float(), with inputs of float32; quantize= makes the weights small."
            )


def as_batch(value: Any, name: str) -> tuple[torch.Tensor, ...]:
    """A tensor, or a list or tuple of tensors, as the tuple of a module's inputs."""
    import torch

    batch = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    for i, item in enumerate(batch):
        if not isinstance(item, torch.Tensor):
            raise NybbleError(
                f"Input {i} of {name} is of type {type(item).__name__}, but a torch.Tensor is "
                "expected: give a tensor, or a tuple of tensors for a module of several inputs."
            )
    return batch


def checked_batches(
    batches: Iterable[Any], example: tuple[torch.Tensor, ...], *, static: bool
) -> Iterator[tuple[torch.Tensor, ...]]:
    """The calibration batches as tuples like ``example``; raises NybbleError at one that differs.

    ``static`` asks for equal shapes, not only for equal ranks.
    """
    if not isinstance(batches, Iterable):
        raise NybbleError(
            "calibration: expected batches of typical inputs, such as a list of tensors, received "
            f"{type(batches).__name__}."
        )
    count = 0
    for count, value in enumerate(batches, start=1):
        name = f"calibration batch {count - 1}"
        batch = as_batch(value, name)
        if len(batch) != len(example):
            raise NybbleError(
                f"{name.capitalize()} has {len(batch)} tensors, but the module takes "
                f"{len(example)}: pass the inputs alone, without labels."
            )
        for i, (given, wanted) in enumerate(zip(batch, example, strict=True)):
            _check_like(f"Input {i} of {name}", given, wanted, static=static)
        yield batch
    if count == 0:
        raise NybbleError(
            'The calibration is empty: quantize="int8" needs at least one batch of typical inputs '
            "to choose the scales from."
        )


def _check_like(name: str, given: torch.Tensor, wanted: torch.Tensor, *, static: bool) -> None:
    if given.dtype != wanted.dtype:
        raise NybbleError(
            f"{name} has dtype {given.dtype}, but the example input has {wanted.dtype}: "
            "convert the calibration batches to that dtype."
        )
    same = given.shape == wanted.shape if static else given.ndim == wanted.ndim
    if not same:
        raise NybbleError(
            f"{name} has shape {tuple(given.shape)}, but the example input has "
            f"{tuple(wanted.shape)}: give batches of the example's shape (x.split(n) cuts larger "
            "ones), or declare dynamic_shapes."
        )
