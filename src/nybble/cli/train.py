"""The command that fine-tunes the 4-bit layers of a program."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, cast

import typer

from nybble.arguments import refuse_missing_folder
from nybble.cli.consoles import stderr, stdout
from nybble.cli.loading import load_program
from nybble.cli.options import (
    Device,
    External,
    File,
    Name,
    Policy,
    number_option,
    one_of,
    pair_option,
)
from nybble.errors import NybbleError

if TYPE_CHECKING:
    from nybble.training import Evaluation, Trainer
    from nybble.training.pending import OnNonFinite

__all__ = ["train"]


_Pair: TypeAlias = tuple[Any, Any]
"""Inputs and labels."""


_Data = Annotated[
    tuple[Path, Path], pair_option("Inputs and labels, a .npy each, row by row.", "--data")
]
_Out = Annotated[Path, typer.Option("--out", metavar="TUNED", help="The .pte to write.")]
_Epochs = Annotated[int, number_option(int, 1, "Passes over the data.", "--epochs")]
_Lr = Annotated[float, number_option(float, 0, "Highest learning rate of AdamW.", "--lr")]
_Decay = Annotated[float, number_option(float, 0, "Decay of the latents.", "--weight-decay")]
_Loss = Annotated[
    str,
    typer.Option(
        metavar="cross_entropy|mse", parser=one_of("cross_entropy", "mse"),
        help="What to make small.",
    ),
]  # fmt: skip
_OnNonFinite = Annotated[
    str,
    typer.Option(
        "--on-nonfinite", metavar="error|count", parser=one_of("error", "count"),
        help="What a NaN or an infinity does: ends the training, or its step is left out.",
    ),
]  # fmt: skip
_Glob = Annotated[str, typer.Option(metavar="GLOB", help="Which 4-bit layers.")]
_Validation = Annotated[
    tuple[Path, Path] | None,
    pair_option("Evaluate on these and not on the data.", "--validation"),
]
_Checkpoint = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write a checkpoint after every epoch.")
]
_Plot = Annotated[
    Path | None, typer.Option(metavar="PNG", help="Draw the losses (needs matplotlib).")
]
_Seed = Annotated[int, number_option(int, 0, "Of the order of rows.", "--seed")]


def train(
    file: File,
    data: _Data,
    out: _Out,
    epochs: _Epochs = 3,
    lr: _Lr = 1e-3,
    weight_decay: _Decay = 0.01,
    loss: _Loss = "cross_entropy",
    trainable: _Glob = "*",
    validation: _Validation = None,
    checkpoint: _Checkpoint = None,
    plot: _Plot = None,
    device: Device = "auto",
    method: Name = None,
    on_unsupported: Policy = "host",
    external: External = None,
    seed: _Seed = 0,
    on_nonfinite: _OnNonFinite = "error",
) -> None:
    """Fine-tune 4-bit layers on your data; write the program back with new codes."""
    import nybble

    _check_paths(out, plot, checkpoint)
    program = load_program(file, device, on_unsupported, external)
    arrays = _arrays(data, "--data")
    shown = arrays if validation is None else _arrays(validation, "--validation")
    rows = _rows(program.method(method))
    trainer = nybble.Trainer(
        program, loss, trainable=trainable, method=method, seed=seed,
        on_nonfinite=cast("OnNonFinite", on_nonfinite),
        **_course(epochs * max(1, len(arrays[0]) // rows), lr, weight_decay),
    )  # fmt: skip
    if external:
        _check_save(trainer, out)
    stderr().print(f"{program.device}: training {', '.join(x.name for x in trainer.layers)}")
    stdout().print(f"before  {_evaluate(trainer, shown, rows)}")
    values = _train_and_save(trainer, arrays, rows, epochs, checkpoint, out)
    _save_plot(plot, values, f"{file.name}, {epochs} epochs")
    _print_curve(values)
    stdout().print(f"after   {_evaluate(trainer, shown, rows)}")


def _course(steps: int, lr: float, weight_decay: float) -> dict[str, Any]:
    """The optimizer, and a learning rate that rises for a twentieth of the steps and falls."""
    import nybble

    return {
        "optimizer": nybble.AdamW(lr=lr, weight_decay=weight_decay),
        "schedule": nybble.Cosine(steps=steps, warmup=steps // 20),
    }


def _train_and_save(
    trainer: Trainer, arrays: _Pair, rows: int, epochs: int, checkpoint: Path | None, out: Path
) -> list[float]:
    """The losses of all steps. What is printed may fail: the program is written before."""
    started = time.perf_counter()
    try:
        values = _run(trainer, arrays, rows, epochs, checkpoint)
    except KeyboardInterrupt:
        stderr().print(_interrupted(trainer, checkpoint, out))
        raise
    seconds = time.perf_counter() - started
    trainer.save(out)
    left_out = f", {trainer.skipped} of them not applied" if trainer.skipped else ""
    stderr().print(f"{len(values)} steps in {seconds:.1f} s{left_out}")
    stderr().print(f"wrote {out}")
    return values


def _interrupted(trainer: Trainer, checkpoint: Path | None, out: Path) -> str:
    """What an interrupt leaves behind."""
    sentence = f"interrupted at step {trainer.steps}: {out} was not written"
    if checkpoint is None or not checkpoint.exists():
        return f"{sentence}."
    return f"{sentence}; nybble.Trainer.resume({str(checkpoint)!r}) goes on from the last epoch."


def _check_paths(out: Path, plot: Path | None, checkpoint: Path | None) -> None:
    """What would fail after the last epoch fails before the first."""
    from nybble.cli.curve import check_plot

    if plot is not None:
        check_plot(plot)
    refuse_missing_folder(out, "program")
    if out.suffix != ".pte" or out.is_dir():
        raise NybbleError(f"--out {out}: expected a file whose name ends in .pte.")
    if checkpoint is not None and checkpoint.exists() and not checkpoint.is_dir():
        raise NybbleError(f"--checkpoint {checkpoint} is a file: name a folder.")


def _check_save(trainer: Trainer, out: Path) -> None:
    """Codes that lie in an external file cannot be written: known before the first epoch."""
    with TemporaryDirectory(prefix=".nybble-", dir=out.parent) as folder:
        trainer.save(Path(folder) / "untrained.pte")


def _print_curve(values: list[float]) -> None:
    from nybble.cli.curve import draw_curve

    console = stdout()
    curve = draw_curve(values, min(console.width, 80) - 1, encoding=console.encoding)
    if curve:
        console.print(curve, markup=False)


def _save_plot(plot: Path | None, values: list[float], title: str) -> None:
    from nybble.cli.curve import save_plot

    if plot is not None:
        save_plot(plot, values, title)
        stderr().print(f"wrote {plot}")


def _arrays(paths: tuple[Path, Path], option: str) -> _Pair:
    from nybble.cli.arrays import read_array

    for path in paths:
        if path.suffix == ".npz":
            raise NybbleError(f"{option}: expected two .npy files of one array, received {path}.")
    x, labels = (read_array(path) for path in paths)
    if x.ndim == 0 or labels.ndim == 0 or len(x) != len(labels):
        raise NybbleError(
            f"{option}: {paths[0]} has shape {list(x.shape)} and {paths[1]} {list(labels.shape)}; "
            "they need as many rows."
        )
    return x, labels


def _rows(method: Any) -> int:
    """Rows of a batch: the first axis of the method's only input."""
    if len(method.inputs) != 1 or not method.inputs[0].shape:
        listed = ", ".join(map(str, method.inputs)) or "nothing"
        raise NybbleError(
            f"This command trains programs of one input with a batch axis; {method.name} takes "
            f"{listed}. Use nybble.Trainer in Python."
        )
    return int(method.inputs[0].shape[0])


def _evaluate(trainer: Trainer, arrays: _Pair, rows: int) -> Evaluation:
    from nybble.training import whole_batches

    return trainer.evaluate(whole_batches(*arrays, rows))


def _run(
    trainer: Trainer, arrays: _Pair, rows: int, epochs: int, checkpoint: Path | None
) -> list[float]:
    """The losses of all steps."""
    from rich import progress as bars

    from nybble.training import shuffled_batches

    losses: list[Any] = []
    columns = (
        bars.TextColumn("{task.description}"), bars.BarColumn(), bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(), bars.TextColumn("left"), bars.TimeRemainingColumn(),
    )  # fmt: skip
    console = stderr()
    hidden = not console.is_terminal
    with bars.Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        task = progress.add_task("training", total=epochs * (len(arrays[0]) // rows))
        for epoch in range(epochs):
            for batch in shuffled_batches(*arrays, rows, trainer.rng):
                losses.append(trainer.step(*batch))
                settled = next((float(x) for x in reversed(losses) if x.settled), None)
                shown = "" if settled is None else f", loss {settled:.4f}"
                progress.update(task, advance=1, description=f"epoch {epoch + 1}{shown}")
            if checkpoint is not None:
                trainer.checkpoint(checkpoint)
    return [float(value) for value in losses]
