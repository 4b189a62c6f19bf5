"""The command that fine-tunes the 4-bit layers of a program."""

from __future__ import annotations

import time
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from nybble.cli.consoles import stderr, stdout
from nybble.cli.options import Device, File
from nybble.errors import NybbleError

if TYPE_CHECKING:
    from nybble.training import Evaluation, Trainer

__all__ = ["train"]


_Pair: TypeAlias = tuple[Any, Any]
"""Inputs and labels."""


class LossName(str, Enum):
    """The losses that have a name."""

    cross_entropy = "cross_entropy"
    mse = "mse"


def _existing(metavar: str, about: str, *names: str) -> Any:
    return typer.Option(*names, metavar=metavar, exists=True, dir_okay=False, help=about)


_Data = Annotated[
    tuple[Path, Path], _existing("X Y", "Inputs and labels, a .npy each, row by row.", "--data")
]
_Out = Annotated[Path, typer.Option("--out", metavar="TUNED", help="The .pte to write.")]
_Epochs = Annotated[int, typer.Option(min=1, help="Passes over the data.")]
_Lr = Annotated[float, typer.Option(min=0, help="Highest learning rate of AdamW.")]
_Decay = Annotated[float, typer.Option(min=0, help="Decay of the latents.")]
_Loss = Annotated[LossName, typer.Option(help="What to make small.")]
_Glob = Annotated[str, typer.Option(metavar="GLOB", help="Which 4-bit layers.")]
_Validation = Annotated[
    tuple[Path, Path] | None,
    _existing("X Y", "Evaluate on these and not on the data.", "--validation"),
]
_Checkpoint = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write a checkpoint after every epoch.")
]
_Plot = Annotated[
    Path | None, typer.Option(metavar="PNG", help="Draw the losses (needs matplotlib).")
]
_Method = Annotated[
    str | None, typer.Option("--method", "-m", metavar="NAME", help="The method to train.")
]
_Seed = Annotated[int, typer.Option(min=0, help="Of the order of rows.")]


def train(
    file: File,
    data: _Data,
    out: _Out,
    epochs: _Epochs = 3,
    lr: _Lr = 1e-3,
    weight_decay: _Decay = 0.01,
    loss: _Loss = LossName.cross_entropy,
    trainable: _Glob = "*",
    validation: _Validation = None,
    checkpoint: _Checkpoint = None,
    plot: _Plot = None,
    device: Device = "auto",
    method: _Method = None,
    seed: _Seed = 0,
) -> None:
    """Fine-tune 4-bit layers on your data; write the program back with new codes."""
    import nybble

    _check_paths(out, plot, checkpoint)
    arrays = _arrays(data, "--data")
    shown = arrays if validation is None else _arrays(validation, "--validation")
    program = nybble.load(file, device=device)
    rows = _rows(program.method(method))
    steps = epochs * max(1, len(arrays[0]) // rows)
    trainer = nybble.Trainer(
        program, loss.value, trainable=trainable, method=method, seed=seed,
        optimizer=nybble.AdamW(lr=lr, weight_decay=weight_decay),
        schedule=nybble.Cosine(steps=steps, warmup=steps // 20),
    )  # fmt: skip
    values = _run(trainer, arrays, shown, rows, epochs, checkpoint)
    trainer.save(out)
    stderr().print(f"wrote {out}")
    _draw(plot, values, f"{file.name}, {epochs} epochs")


def _check_paths(out: Path, plot: Path | None, checkpoint: Path | None) -> None:
    """What would fail after the last epoch fails before the first."""
    from nybble.cli.curve import check_plot

    if plot is not None:
        check_plot(plot)
    if not out.parent.is_dir():
        raise NybbleError(f"The folder {out.parent} of the program {out} does not exist: make it.")
    if out.suffix != ".pte" or out.is_dir():
        raise NybbleError(f"--out {out}: expected a file whose name ends in .pte.")
    if checkpoint is not None and checkpoint.exists() and not checkpoint.is_dir():
        raise NybbleError(f"--checkpoint {checkpoint} is a file: name a folder.")


def _run(
    trainer: Trainer, arrays: _Pair, shown: _Pair, rows: int, epochs: int, checkpoint: Path | None
) -> list[float]:
    """Evaluate, train, draw, evaluate; the losses of all steps."""
    from nybble.cli.curve import draw_curve

    names = ", ".join(layer.name for layer in trainer.layers)
    stderr().print(f"{trainer.program.device}: training {names}")
    stdout().print(f"before  {_evaluate(trainer, shown, rows)}", highlight=False)
    started = time.perf_counter()
    values = _epochs(trainer, arrays, rows, epochs, checkpoint)
    seconds = time.perf_counter() - started
    stderr().print(f"{len(values)} steps in {seconds:.1f} s")
    after = _evaluate(trainer, shown, rows)
    stdout().print(draw_curve(values), highlight=False)
    stdout().print(f"after   {after}", highlight=False)
    return values


def _draw(plot: Path | None, values: list[float], title: str) -> None:
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


def _epochs(
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
    with bars.Progress(*columns, console=stderr(), transient=True) as progress:
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
