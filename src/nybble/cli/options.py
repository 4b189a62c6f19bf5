"""Arguments and options that several commands take, and what their values may be.

Values are parsed here, not by typer, whose words for a wrong one change with its version.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = [
    "Device", "Devices", "External", "File", "Inputs", "Name", "Policy", "Seed", "number_option",
    "one_of", "pair_option",
]  # fmt: skip

DEVICES = (
    "auto, vulkan, webgpu, one of several as vulkan:1 (see doctor), dawn (where the package "
    "wgpudawn is installed), or host"
)


def number_option(kind: type[int | float], least: int, about: str, *names: str) -> Any:
    """Return an option for a number of at least ``least``; its help shows ``N``, or ``X``."""
    expected = f"{'a whole number' if kind is int else 'a number'} of at least {least}"

    def parse(value: Any) -> float:
        try:
            found = kind(value)
        except ValueError:
            found = None
        if found is None or math.isnan(found) or found < least:
            raise typer.BadParameter(f"expected {expected}, received {value!r}.")
        return found

    metavar = "N" if kind is int else "X"
    return typer.Option(*names, parser=parse, metavar=metavar, help=about)


def one_of(*values: str) -> Callable[[Any], str]:
    """Return a parser that takes ``values`` and nothing else."""

    def parse(value: Any) -> str:
        if value not in values:
            raise typer.BadParameter(f"expected {' or '.join(values)}, received {value!r}.")
        return str(value)

    return parse


def pair_option(about: str, name: str) -> Any:
    """Return an option for two files, inputs and labels; an option's name is not taken as one."""

    def check(paths: tuple[Path, Path] | None) -> tuple[Path, Path] | None:
        swallowed = [path for path in paths or () if str(path).startswith("-")]
        if swallowed:
            raise typer.BadParameter(
                f"{name} takes two files, inputs and labels; where one was expected stands the "
                f"option {swallowed[0]}."
            )
        return paths

    return typer.Option(name, metavar="X Y", callback=check, help=about)


File = Annotated[Path, typer.Argument(metavar="FILE", help="A .pte program.")]
Inputs = Annotated[
    list[Path] | None,
    typer.Option(
        "--input", "-i", metavar="ARRAY", help="A .npy for each input, in order, or one .npz."
    ),
]
Device = Annotated[str, typer.Option("--device", "-d", metavar="DEVICE", help=f"{DEVICES}.")]
Devices = Annotated[
    list[str] | None,
    typer.Option(
        "--device", "-d", metavar="DEVICE",
        help=f"Repeat it: {DEVICES}. Without it webgpu and vulkan.",
    ),
]  # fmt: skip
Name = Annotated[
    str | None,
    typer.Option("--method", "-m", metavar="NAME", help="The method: forward, or the only one."),
]
Policy = Annotated[
    str,
    typer.Option(
        "--on-unsupported", metavar="host|error", parser=one_of("host", "error"),
        help="Calls the device cannot take: run on host, or refuse.",
    ),
]  # fmt: skip
External = Annotated[
    list[Path] | None,
    typer.Option(
        "--external", metavar="FILE", help="A .ptd with constants of the program; may repeat."
    ),
]
Seed = Annotated[int, number_option(int, 0, "Of random inputs, if none is given.", "--seed")]
