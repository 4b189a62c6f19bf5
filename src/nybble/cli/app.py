"""The commands. Each loads a program, asks it for one thing, and prints the answer."""

from __future__ import annotations

import time
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nybble.cli.consoles import stderr, stdout
from nybble.cli.train import train
from nybble.errors import NybbleError

if TYPE_CHECKING:
    from nybble.program import Method, Program

__all__ = ["app"]

app = typer.Typer(
    help="Run quantized PyTorch programs (ExecuTorch .pte) on any GPU through WebGPU.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class OnUnsupported(str, Enum):
    """What to do with calls that the device cannot take."""

    host = "host"
    error = "error"


_File = Annotated[
    Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="A .pte program.")
]
_Inputs = Annotated[
    list[Path] | None,
    typer.Option(
        "--input", "-i", metavar="ARRAY", help="A .npy for each input, in order, or one .npz."
    ),
]
_Device = Annotated[
    str,
    typer.Option(
        "--device", "-d", metavar="DEVICE", help="auto, webgpu, webgpu:1 (see doctor) or host."
    ),
]
_Name = Annotated[
    str | None,
    typer.Option(
        "--method", "-m", metavar="NAME", help="The method to call: forward, or the only one."
    ),
]
_Policy = Annotated[
    OnUnsupported,
    typer.Option("--on-unsupported", help="Calls the device cannot take: run on host, or refuse."),
]
_External = Annotated[
    list[Path] | None,
    typer.Option(
        "--external", metavar="FILE", exists=True, dir_okay=False, help="A .ptd file; may repeat."
    ),
]
_Seed = Annotated[
    int, typer.Option("--seed", metavar="N", min=0, help="Of random inputs, if none is given.")
]
_Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="y.npz, or y.npy (of several: y_0.npy, ...)."
    ),
]
_Trace = Annotated[
    Path | None,
    typer.Option("--trace", metavar="FILE", help="Write a trace for ui.perfetto.dev too."),
]


def _print_version(asked: bool) -> None:
    if asked:
        import nybble

        stdout().print(f"nybble {nybble.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    del version


@app.command()
def run(
    file: _File,
    inputs: _Inputs = None,
    output: _Output = None,
    device: _Device = "auto",
    method: _Name = None,
    on_unsupported: _Policy = OnUnsupported.host,
    external: _External = None,
) -> None:
    """Run a program; print or write what it returns."""
    from nybble.cli.arrays import check_output_path, read_inputs, write_outputs

    if output is not None:
        check_output_path(output)
    program = _load(file, device, on_unsupported, external)
    called = _select(program, method)
    arrays = read_inputs(inputs or (), called.inputs)
    started = time.perf_counter()
    results = called(*arrays)
    seconds = time.perf_counter() - started
    outputs = results if isinstance(results, tuple) else (results,)
    stderr().print(f"{program.device}: {seconds * 1e3:.1f} ms, the first call")
    if output is None:
        _print_arrays(outputs, called)
        return
    for path in write_outputs(output, outputs, called.outputs):
        stderr().print(f"wrote {path}")


@app.command()
def inspect(file: _File, external: _External = None) -> None:
    """Print a program as nybble reads it. Needs no GPU."""
    typer.echo(str(_load(file, "host", OnUnsupported.host, external)))


@app.command()
def verify(
    file: _File,
    inputs: _Inputs = None,
    device: _Device = "auto",
    method: _Name = None,
    on_unsupported: _Policy = OnUnsupported.host,
    seed: _Seed = 0,
    external: _External = None,
) -> None:
    """Compare every call with the host reference."""
    program = _load(file, device, on_unsupported, external)
    called = _select(program, method)
    report = called.verify(*_given_or_random(inputs, called, seed))
    table = report.table()
    table.title = None
    stdout().print(table)
    typer.echo(report.summary)
    if not report:
        raise typer.Exit(1)


@app.command()
def profile(
    file: _File,
    inputs: _Inputs = None,
    trace: _Trace = None,
    device: _Device = "auto",
    method: _Name = None,
    on_unsupported: _Policy = OnUnsupported.host,
    seed: _Seed = 0,
    external: _External = None,
) -> None:
    """Print GPU time, bytes and operations by dispatch."""
    if trace is not None and not trace.parent.is_dir():
        raise NybbleError(
            f"The folder {trace.parent} of the trace {trace} does not exist: make it."
        )
    program = _load(file, device, on_unsupported, external)
    called = _select(program, method)
    result = called.profile(*_given_or_random(inputs, called, seed))
    stdout().print(result.table())
    if trace is not None:
        result.save_trace(trace)
        stderr().print(f"wrote {trace}: open it at https://ui.perfetto.dev")


app.command()(train)


@app.command()
def doctor() -> None:
    """Say what adapters there are, and what is missing."""
    from nybble.doctor import examine, show

    checks = examine()
    show(checks, stdout())
    if any(check.status == "missing" for check in checks):
        raise typer.Exit(1)


@app.command()
def demo(device: _Device = "auto") -> None:
    """Classify handwritten digits, show some, and fine-tune 4-bit layers on turned ones."""
    from nybble.demo.recovery import show_recovery
    from nybble.demo.show import show

    result = show(stdout(), device)
    show_recovery(stdout(), device)
    if result.identical is False:
        raise typer.Exit(1)


def _load(file: Path, device: str, policy: OnUnsupported, external: list[Path] | None) -> Program:
    import nybble

    files = tuple(external or ())
    return nybble.load(file, device=device, on_unsupported=policy.value, external=files)


def _select(program: Program, name: str | None) -> Method:
    if name is None and len(program) == 1:
        return program[program.methods[0]]
    return program["forward" if name is None else name]


def _given_or_random(paths: list[Path] | None, method: Method, seed: int) -> tuple[Any, ...]:
    from nybble.cli.arrays import random_inputs, read_inputs

    return read_inputs(paths, method.inputs) if paths else random_inputs(method.inputs, seed)


def _print_arrays(arrays: tuple[Any, ...], method: Method) -> None:
    import numpy as np

    for spec, array in zip(method.outputs, arrays, strict=True):
        typer.echo(f"{spec.name}: {array.dtype}{list(array.shape)}")
        typer.echo(np.array2string(array, threshold=200, max_line_width=79))
