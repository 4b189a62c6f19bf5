"""The commands. Each loads a program, asks it for one thing, and prints the answer."""

from __future__ import annotations

import inspect as python
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nybble.arguments import refuse_missing_folder
from nybble.cli.consoles import stderr, stdout
from nybble.cli.loading import load_program
from nybble.cli.options import Device, Devices, External, File, Inputs, Name, Policy, Seed
from nybble.cli.train import train
from nybble.errors import NybbleError

if TYPE_CHECKING:
    from nybble.compare_report import CompareReport
    from nybble.program import Method
    from nybble.verify import VerifyReport

__all__ = ["app"]

app = typer.Typer(
    help="Run and train quantized PyTorch programs (ExecuTorch .pte) on any GPU.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


_FURTHER_SECONDS = 0.5
_FURTHER_CALLS = 20
"""How many calls are timed after the first, and for how long."""

_Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE",
        help="Write the results: all to one y.npz, or to y.npy (several to y_0.npy, y_1.npy).",
    ),
]  # fmt: skip
_Trace = Annotated[
    Path | None,
    typer.Option("--trace", metavar="FILE", help="Write a trace for ui.perfetto.dev too."),
]


def _command(function: Callable[..., None]) -> Callable[..., None]:
    """Add a command; the list of commands shows its first sentence whole, however long."""
    summary = (python.getdoc(function) or "").partition("\n")[0]
    return app.command(short_help=summary)(function)


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


@_command
def run(
    file: File,
    inputs: Inputs = None,
    output: _Output = None,
    device: Device = "auto",
    method: Name = None,
    on_unsupported: Policy = "host",
    external: External = None,
) -> None:
    """Run a program; print or write what it returns."""
    from nybble.cli.arrays import check_output_path, read_inputs, write_outputs

    if output is not None:
        check_output_path(output)
    program = load_program(file, device, on_unsupported, external)
    called = program.method(method)
    arrays = read_inputs(inputs or (), called.inputs)
    outputs, first = _timed(called, arrays)
    if output is None:
        _print_arrays(outputs, called)
    else:
        for path in write_outputs(output, outputs, called.outputs):
            stderr().print(f"wrote {path}")
    told = f"{program.device}: {first * 1e3:.1f} ms, the first call"
    if program.device.name != "host":
        # Kernels are compiled in the first call; the host compiles nothing.
        told += _further(called, arrays)
    stderr().print(told)


@_command
def inspect(file: File, external: External = None) -> None:
    """Print a program as nybble reads it. Needs no GPU."""
    typer.echo(str(load_program(file, "host", "host", external)))


@_command
def verify(
    file: File,
    inputs: Inputs = None,
    device: Device = "auto",
    method: Name = None,
    on_unsupported: Policy = "host",
    seed: Seed = 0,
    external: External = None,
) -> None:
    """Compare every call with the host reference."""
    program = load_program(file, device, on_unsupported, external)
    if device == "auto" and program.device.name == "host":
        raise NybbleError(
            "there is no adapter that can run this program, and the host would be compared with "
            "itself: `nybble doctor` says what is missing. With --device host that is accepted."
        )
    called = program.method(method)
    report = called.verify(*_given_or_random(inputs, called, seed))
    _print_report(report)


@_command
def compare(
    file: File,
    devices: Devices = None,
    inputs: Inputs = None,
    method: Name = None,
    seed: Seed = 0,
    external: External = None,
) -> None:
    """Compare devices with each other, call by call."""
    import nybble

    names = ("webgpu", "vulkan") if not devices else tuple(devices)
    if len(names) == 1:
        raise NybbleError(
            f"compare needs two devices, and received only {names[0]}: give --device twice, or "
            "leave it out for webgpu and vulkan."
        )
    called = load_program(file, "host", "host", external).method(method)
    arrays = _given_or_random(inputs, called, seed)
    files = tuple(external or ())
    report = nybble.compare(file, *arrays, devices=names, method=method, external=files)
    _print_report(report)


@_command
def profile(
    file: File,
    inputs: Inputs = None,
    trace: _Trace = None,
    device: Device = "auto",
    method: Name = None,
    on_unsupported: Policy = "host",
    seed: Seed = 0,
    external: External = None,
) -> None:
    """Print GPU time, bytes and operations by dispatch."""
    if trace is not None:
        refuse_missing_folder(trace, "trace")
    program = load_program(file, device, on_unsupported, external)
    called = program.method(method)
    result = called.profile(*_given_or_random(inputs, called, seed))
    stdout().print(result.table())
    if trace is not None:
        result.save_trace(trace)
        stderr().print(f"wrote {trace}: open it at https://ui.perfetto.dev")


_command(train)


@_command
def doctor() -> None:
    """Say what adapters there are, and what is missing."""
    from nybble.doctor import examine, show

    checks = examine()
    show(checks, stdout())
    if any(check.status == "missing" for check in checks):
        raise typer.Exit(1)


@_command
def demo(device: Device = "auto") -> None:
    """Classify handwritten digits, show some, and fine-tune 4-bit layers on turned ones."""
    from nybble.demo.recovery import show_recovery
    from nybble.demo.show import show

    result = show(stdout(), device)
    show_recovery(stdout(), device)
    if result.identical is False:
        raise typer.Exit(1)


def _timed(method: Method, inputs: tuple[Any, ...]) -> tuple[tuple[Any, ...], float]:
    """A call's outputs and its seconds."""
    started = time.perf_counter()
    results = method(*inputs)
    seconds = time.perf_counter() - started
    return results if isinstance(results, tuple) else (results,), seconds


def _further(method: Method, inputs: tuple[Any, ...]) -> str:
    """What further calls take. Drivers warm up over several, so a second alone says little."""
    seconds: list[float] = []
    while len(seconds) < _FURTHER_CALLS and sum(seconds) < _FURTHER_SECONDS:
        seconds.append(_timed(method, inputs)[1])
    calls = "the second" if len(seconds) == 1 else f"the median of {len(seconds)} more"
    return f"; {statistics.median(seconds) * 1e3:.1f} ms, {calls}"


def _print_report(report: VerifyReport | CompareReport) -> None:
    """The table, its summary below it; exit status 1 where something differs."""
    table = report.table()
    table.title = None
    stdout().print(table)
    typer.echo(report.summary)
    if not report:
        raise typer.Exit(1)


def _given_or_random(paths: list[Path] | None, method: Method, seed: int) -> tuple[Any, ...]:
    from nybble.cli.arrays import read_inputs
    from nybble.random_inputs import random_inputs

    return read_inputs(paths, method.inputs) if paths else random_inputs(method.inputs, seed)


def _print_arrays(arrays: tuple[Any, ...], method: Method) -> None:
    import numpy as np

    for spec, array in zip(method.outputs, arrays, strict=True):
        typer.echo(f"{spec.name}: {array.dtype}{list(array.shape)}")
        typer.echo(np.array2string(array, threshold=200, max_line_width=79))
