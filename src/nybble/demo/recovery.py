"""Fine-tuning, shown: 4-bit layers learn to read digits that are turned."""

from __future__ import annotations

import time
from dataclasses import dataclass

from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from nybble.demo.rotated import DEGREES, Q4_PROGRAM, load_rotated_digits
from nybble.program import load
from nybble.training import AdamW, Cosine, Trainer, shuffled_batches, whole_batches

__all__ = ["Recovery", "recover", "show_recovery"]

EPOCHS = 12


@dataclass(frozen=True)
class Recovery:
    """Accuracies in [0, 1] on the held-out digits, and what the fine-tuning took.

    ``float_upright`` and ``float_turned`` are the network's before quantization; ``upright``,
    ``turned`` and ``tuned`` the 4-bit program's: as shipped, on turned digits, and on turned digits
    after fine-tuning.
    """

    float_upright: float
    float_turned: float
    upright: float
    turned: float
    tuned: float
    steps: int
    seconds: float
    device: str


def recover(
    device: str = "auto", epochs: int = EPOCHS, progress: Progress | None = None
) -> Recovery:
    """Fine-tune the shipped 4-bit program on turned digits.

    Raises NybbleError when the device does not exist or the package's data is missing.
    """
    digits = load_rotated_digits()
    program = load(Q4_PROGRAM, device=device)
    rows = program["forward"].inputs[0].shape[0]
    steps = epochs * (len(digits.train_labels) // rows)
    with program:
        trainer = Trainer(
            program, optimizer=AdamW(lr=4e-3), schedule=Cosine(steps=steps, warmup=steps // 10)
        )

        def accuracy(turned: bool) -> float:
            images = digits.test_images if turned else digits.upright_images
            found = trainer.evaluate(whole_batches(images, digits.test_labels, rows)).accuracy
            return found or 0.0

        before = accuracy(turned=False), accuracy(turned=True)
        started = time.perf_counter()
        task = None if progress is None else progress.add_task("fine-tuning", total=epochs)
        for _ in range(epochs):
            data = shuffled_batches(digits.train_images, digits.train_labels, rows, trainer.rng)
            for batch in data:
                trainer.step(*batch)
            if progress is not None and task is not None:
                progress.advance(task)
        tuned = accuracy(turned=True)
        seconds = time.perf_counter() - started
        trainer.close()
    return Recovery(*digits.float_accuracies, *before, tuned, steps, seconds, str(program.device))


def show_recovery(console: Console, device: str = "auto") -> Recovery:
    """Fine-tune, print the accuracies, and return them."""
    console.print(Text("\nnybble.Trainer: 4-bit layers fine-tuned where they run", "bold"))
    if console.is_terminal:
        with Progress(console=console, transient=True) as progress:
            result = recover(device, progress=progress)
    else:
        result = recover(device)
    grid = Table.grid(padding=(0, 2))
    for _ in range(2):
        grid.add_column()
    turned = f"turned by {DEGREES} degrees"
    grid.add_row("float32, upright digits", f"{result.float_upright:.2%}")
    grid.add_row("4-bit, upright digits", f"{result.upright:.2%}")
    grid.add_row(f"4-bit, {turned}", f"{result.turned:.2%}")
    grid.add_row("the same, fine-tuned", Text(f"{result.tuned:.2%}", "bold green"))
    console.print(grid)
    console.print(f"{result.steps} steps in {result.seconds:.1f} s on {result.device}")
    return result
