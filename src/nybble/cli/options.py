"""Arguments and options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Device", "Devices", "External", "File", "Inputs", "Name", "Seed"]

DEVICES = "auto, vulkan, webgpu, one of several as vulkan:1 (see doctor), or host"

File = Annotated[
    Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="A .pte program.")
]
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
    typer.Option(
        "--method", "-m", metavar="NAME", help="The method to call: forward, or the only one."
    ),
]
External = Annotated[
    list[Path] | None,
    typer.Option(
        "--external", metavar="FILE", exists=True, dir_okay=False, help="A .ptd file; may repeat."
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", metavar="N", min=0, help="Of random inputs, if none is given.")
]
