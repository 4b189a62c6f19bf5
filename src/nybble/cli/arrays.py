"""Arrays of the command line: read from .npy and .npz, drawn at random, written back."""

from __future__ import annotations

import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nybble.arguments import refuse_missing_folder
from nybble.errors import NybbleError
from nybble.graph import TensorSpec

__all__ = ["check_output_path", "read_array", "read_inputs", "write_outputs"]

Array = NDArray[np.generic]

# What numpy and zipfile raise for files that are damaged, encrypted, huge, or of another kind.
_UNREADABLE = (
    *(OSError, ValueError, EOFError, MemoryError, OverflowError, RuntimeError),
    *(SyntaxError, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)


def read_inputs(paths: Sequence[Path], specs: Sequence[TensorSpec]) -> tuple[Array, ...]:
    """Read the arrays for inputs ``specs``: several .npy in order, or one .npz by name.

    In an .npz an input is found under its own name, ``input_N`` or numpy's ``arr_N``.
    Raises NybbleError for a wrong number of files and for a file that numpy cannot read.
    """
    archives = [path for path in paths if path.suffix == ".npz"]
    if archives and len(paths) > 1:
        raise NybbleError(
            f"{archives[0]} was given together with other files: give one .npz with all inputs, "
            "or one .npy for each input."
        )
    if archives:
        return _read_archive(archives[0], specs)
    if len(paths) != len(specs):
        wanted = ", ".join(map(str, specs)) or "none"
        raise NybbleError(
            f"The method takes {wanted}, and {len(paths)} files were given: repeat --input for "
            "each input, in order, or give one .npz with all of them."
        )
    return tuple(read_array(path) for path in paths)


def check_output_path(path: Path) -> None:
    """Raise NybbleError unless an array can be written to ``path``, before any work is done."""
    if path.suffix not in (".npy", ".npz"):
        raise NybbleError(
            f"The output {path} ends in {path.suffix or 'nothing'}: name a .npy file (for several "
            "outputs numbered files are made of it) or an .npz file."
        )
    refuse_missing_folder(path, "output")


def write_outputs(
    path: Path, arrays: Sequence[Array], specs: Sequence[TensorSpec]
) -> tuple[Path, ...]:
    """Write ``arrays`` and return the files made: ``y.npz``, ``y.npy``, or ``y_0.npy`` and so on.

    Raises NybbleError when a file cannot be written.
    """
    check_output_path(path)
    if path.suffix == ".npz":
        names = [spec.name for spec in specs]
        _save_archive(path, dict(zip(names, arrays, strict=True)))
        return (path,)
    if len(arrays) == 1:
        paths: tuple[Path, ...] = (path,)
    else:
        paths = tuple(path.with_name(f"{path.stem}_{n}.npy") for n in range(len(arrays)))
    for target, array in zip(paths, arrays, strict=True):
        _save_array(target, array)
    return paths


def read_array(path: Path) -> Array:
    """Read a .npy file. Raises NybbleError when numpy cannot."""
    try:
        array = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise NybbleError(f"The input {path} does not exist.") from None
    except _UNREADABLE as error:
        raise NybbleError(
            f"The input {path} is not a .npy file that numpy reads without pickle ({error}): "
            "write it with numpy.save."
        ) from error
    if not isinstance(array, np.ndarray):
        raise NybbleError(f"The input {path} is an archive, not one array: name it .npz.")
    return array


def _read_archive(path: Path, specs: Sequence[TensorSpec]) -> tuple[Array, ...]:
    try:
        archive = np.load(path, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise NybbleError(f"The input {path} is one array, not an archive: name it .npy.")
        with archive:
            return tuple(
                archive[_find(path, archive.files, spec, position)]
                for position, spec in enumerate(specs)
            )
    except FileNotFoundError:
        raise NybbleError(f"The input {path} does not exist.") from None
    except _UNREADABLE as error:
        raise NybbleError(
            f"The input {path} is not an .npz file that numpy reads without pickle ({error}): "
            "write it with numpy.savez."
        ) from error


def _find(path: Path, present: Sequence[str], spec: TensorSpec, position: int) -> str:
    wanted = tuple(dict.fromkeys((spec.name, f"input_{position}", f"arr_{position}")))
    for name in wanted:
        if name in present:
            return name
    raise NybbleError(
        f"The input {path} holds {', '.join(present) or 'no arrays'}, and none of the names under "
        f"which input {position} ({spec}) is looked for: {', '.join(wanted)}."
    )


def _save_array(path: Path, array: Array) -> None:
    try:
        np.save(path, array, allow_pickle=False)
    except OSError as error:
        raise NybbleError(f"The output {path} cannot be written: {error}.") from error


def _save_archive(path: Path, arrays: dict[str, Array]) -> None:
    try:
        np.savez(path, **arrays)  # type: ignore[arg-type]  # numpy's stub takes a name for allow_pickle
    except OSError as error:
        raise NybbleError(f"The output {path} cannot be written: {error}.") from error
