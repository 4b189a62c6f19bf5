"""The command that fine-tunes the 4-bit layers of a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from nybble.arguments import refuse_missing_folder
from nybble.cli.consoles import stderr, stdout
from nybble.cli.loading import load_program
from nybble.cli.options import (
    Device,
    External,
    Name,
    Policy,
    number_option,
    one_of,
    pair_option,
)
from nybble.cli.train_choices import (
    Choices,
    Pair,
    Progress,
    check_classes,
    read_progress,
    refuse_unfinished,
)
from nybble.cli.train_run import TrainingRun
from nybble.errors import NybbleError
from nybble.words import counted

if TYPE_CHECKING:
    from nybble.program import Program
    from nybble.training import Evaluation, Trainer
    from nybble.training.pending import OnNonFinite

__all__ = ["train"]


_File = Annotated[Path | None, typer.Argument(metavar="FILE", help="A .pte program.")]
_Data = Annotated[
    tuple[Path, Path] | None, pair_option("Inputs and labels, a .npy each, row by row.", "--data")
]
_Out = Annotated[Path | None, typer.Option("--out", metavar="TUNED", help="The .pte to write.")]
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
    Path | None,
    typer.Option(metavar="DIR", help="Write a checkpoint after every epoch, and at Ctrl-C."),
]
_Resume = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Go on from a checkpoint; it knows FILE and the options."),
]
_Plot = Annotated[
    Path | None, typer.Option(metavar="PNG", help="Draw the losses (needs matplotlib).")
]
_Seed = Annotated[int, number_option(int, 0, "Of the order of rows.", "--seed")]


def train(
    ctx: typer.Context,
    file: _File = None,
    data: _Data = None,
    out: _Out = None,
    epochs: _Epochs = 3,
    lr: _Lr = 1e-3,
    weight_decay: _Decay = 0.01,
    loss: _Loss = "cross_entropy",
    trainable: _Glob = "*",
    validation: _Validation = None,
    checkpoint: _Checkpoint = None,
    resume: _Resume = None,
    plot: _Plot = None,
    device: Device = "auto",
    method: Name = None,
    on_unsupported: Policy = "host",
    external: External = None,
    seed: _Seed = 0,
    on_nonfinite: _OnNonFinite = "error",
) -> None:
    """Fine-tune 4-bit layers on your data; write the program back with new codes."""
    if resume is None:
        required = {"argument 'FILE'": file, "option '--data'": data, "option '--out'": out}
        for name, value in required.items():
            if value is None:
                ctx.fail(f"Missing {name}.")
    # A training that goes on looks only at those that are given.
    asked = Choices(
        file=cast("Path", file), data=cast("Any", data), out=cast("Path", out), epochs=epochs,
        lr=lr, weight_decay=weight_decay, loss=loss, trainable=trainable, validation=validation,
        checkpoint=checkpoint, plot=plot, device=device, method=method,
        on_unsupported=on_unsupported, external=tuple(external or ()), seed=seed,
        on_nonfinite=on_nonfinite,
    )  # fmt: skip
    if resume is None:
        _train(asked, asked.file)
    else:
        given = [name for name in ctx.params if _is_given(ctx, name)]
        _go_on(resume, asked, given)


def _is_given(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _go_on(folder: Path, asked: Choices, given: Sequence[str]) -> None:
    """Go on with the training of a checkpoint."""
    progress = read_progress(folder)
    chosen = progress.choices.going_on(asked, given, folder)
    chosen = replace(chosen, checkpoint=asked.checkpoint or folder)
    if progress.is_finished and "out" not in given and chosen.out.exists():
        raise NybbleError(
            f"The training in {folder} is finished: {chosen.out} was written after "
            f"{counted(chosen.epochs, 'epoch')}. To train that program further, train it anew."
        )
    source = asked.file if "file" in given else folder / "program.pte"
    _train(chosen, source, replace(progress, choices=chosen), folder)


def _train(
    choices: Choices, file: Path, progress: Progress | None = None, resumed: Path | None = None
) -> None:
    """Train the program in ``file``, from the start or from how far a checkpoint is."""
    import nybble

    _check_paths(choices, resumed)
    program = load_program(file, choices.device, choices.on_unsupported, choices.external)
    method = program.method(choices.method)
    data, rows = _read_pair(choices.data, "--data"), _rows(method)
    per_epoch = max(1, len(data.x) // rows)
    shown = data
    if choices.validation is not None:
        shown = _read_pair(choices.validation, "--validation")
    for pair in (data, shown):
        check_classes(pair, choices.loss, method.outputs[0].shape)
    if progress is None:
        trainer = _new_trainer(program, choices, choices.epochs * per_epoch)
    else:
        folder = cast("Path", resumed)
        trainer = nybble.Trainer.resume(folder, program)
        progress.refuse_other_rows(data, shown, folder)
    _check_writing(trainer, choices)
    _tell_begin(trainer, progress)
    if progress is None:
        before, order = str(_evaluate(trainer, shown, rows)), trainer.rng.bit_generator.state
        progress = Progress(choices, (), per_epoch, before, data.digest, shown.digest, order)
    stdout().print(f"before  {progress.before}")
    run = TrainingRun(trainer, data, rows, progress, choices.checkpoint, resumed)
    values = run.finish(choices.out)
    stderr().print(f"wrote {choices.out}")
    _save_plot(choices.plot, values, f"{choices.file.name}, {choices.epochs} epochs")
    _print_curve(values)
    stdout().print(f"after   {_evaluate(trainer, shown, rows)}")


def _new_trainer(program: Program, choices: Choices, steps: int) -> Trainer:
    """Its learning rate rises for a twentieth of the steps, and falls after them."""
    import nybble

    return nybble.Trainer(
        program, choices.loss, trainable=choices.trainable, method=choices.method,
        seed=choices.seed, on_nonfinite=cast("OnNonFinite", choices.on_nonfinite),
        optimizer=nybble.AdamW(lr=choices.lr, weight_decay=choices.weight_decay),
        schedule=nybble.Cosine(steps=steps, warmup=steps // 20),
    )  # fmt: skip


def _tell_begin(trainer: Trainer, progress: Progress | None) -> None:
    layers = ", ".join(layer.name for layer in trainer.layers)
    told = f"{trainer.program.device}: training {layers}"
    if progress is not None:
        told += f", from step {len(progress.losses)} on"
    stderr().print(told)


def _check_paths(choices: Choices, resumed: Path | None) -> None:
    """What would fail after the last epoch fails before the first."""
    from nybble.cli.curve import check_plot

    out, checkpoint = choices.out, choices.checkpoint
    if choices.plot is not None:
        check_plot(choices.plot)
    refuse_missing_folder(out, "program")
    if out.suffix != ".pte" or out.is_dir():
        raise NybbleError(f"--out {out}: expected a file whose name ends in .pte.")
    if checkpoint is not None and checkpoint.exists() and not checkpoint.is_dir():
        raise NybbleError(f"--checkpoint {checkpoint} is a file: name a folder.")
    folders = [folder.resolve() for folder in (checkpoint, resumed) if folder is not None]
    if out.resolve() in [folder / "program.pte" for folder in folders]:
        raise NybbleError(
            f"--out {out} is where the checkpoint keeps the untrained program: name another file."
        )
    if checkpoint is not None and (resumed is None or folders[0] != folders[1]):
        refuse_unfinished(checkpoint)


def _check_writing(trainer: Trainer, choices: Choices) -> None:
    """Codes in an external file, and a folder of another program: known before the first epoch."""
    from nybble.training.checkpoint import program_digest, refuse_other_program

    if choices.external:
        with TemporaryDirectory(prefix=".nybble-", dir=choices.out.parent) as folder:
            trainer.save(Path(folder) / "untrained.pte")
    if choices.checkpoint is not None:
        refuse_other_program(choices.checkpoint, program_digest(trainer.program.data))


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


def _read_pair(paths: tuple[Path, Path], option: str) -> Pair:
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
    return Pair(paths, x, labels)


def _rows(method: Any) -> int:
    """Rows of a batch: the first axis of the method's only input."""
    if len(method.inputs) != 1 or not method.inputs[0].shape:
        listed = ", ".join(map(str, method.inputs)) or "nothing"
        raise NybbleError(
            f"This command trains programs of one input with a batch axis; {method.name} takes "
            f"{listed}. Use nybble.Trainer in Python."
        )
    return int(method.inputs[0].shape[0])


def _evaluate(trainer: Trainer, pair: Pair, rows: int) -> Evaluation:
    from nybble.training import whole_batches

    return trainer.evaluate(whole_batches(pair.x, pair.labels, rows))
