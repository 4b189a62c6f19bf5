"""Fine-tunes a small 4-bit language model on a text of yours, and shows what it writes.

Run ``python examples/character_transformer.py TEXT``; it needs nothing but nybble. The model
(``character.pte`` beside this file: 2 layers, 4-bit linears and embedding, made by
``make_character_model.py``) reads and writes printable ASCII. It writes a few lines, learns from
the text, and writes again. The loss curve is printed, and drawn with ``--plot`` where matplotlib is
installed; the tuned program is written with its new codes. How far it is stands on standard error:
the program was exported for a batch of 16 texts, so that each character written costs as much as
the forward pass of a training step (``--characters`` says how many).
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import nybble
from characters import decode, encode, windows
from nybble.cli.curve import check_plot, draw_curve, save_plot

MODEL = Path(__file__).with_name("character.pte")
TOLD = 20
"""Characters, and steps, from one line about progress to the next."""


def tell(text: str = "") -> None:
    """How far it is: one line on a terminal, written over, ``""`` to clear it; else a line each."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{text:<70}" + ("" if text else "\r"))
    elif text:
        sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def write(
    trainer: nybble.Trainer, prompt: str, count: int, temperature: float, shape: tuple[int, int]
) -> str:
    """``prompt`` continued by ``count`` characters, drawn from the model's distribution."""
    batch, length = shape
    generator = np.random.default_rng(7)
    tokens = list(encode(prompt))
    for done in range(1, count + 1):
        # Half of the window is dropped at a time, so that there is always something before.
        start = max(0, (len(tokens) - length) // (length // 2) + 1) * (length // 2)
        context = tokens[start if len(tokens) > length else 0 :][-length:]
        inputs = np.zeros((batch, length), np.int64)
        inputs[0, : len(context)] = context
        logits = trainer.forward(inputs)[0, len(context) - 1].astype(np.float64) / temperature
        chances = np.exp(logits - logits.max())
        tokens.append(int(generator.choice(len(chances), p=chances / chances.sum())))
        if done % TOLD == 0 or done == count:
            tell(f"writing: {done} of {count} characters")
    tell()
    return decode(np.array(tokens))


def held_out_loss(
    trainer: nybble.Trainer, tokens: NDArray[np.int64], shape: tuple[int, int]
) -> float:
    """Mean loss on windows of the end of the text, which is not trained on."""
    generator = np.random.default_rng(3)
    return trainer.evaluate([windows(tokens, *shape, generator) for _ in range(8)]).loss


def train(
    trainer: nybble.Trainer, tokens: NDArray[np.int64], steps: int, shape: tuple[int, int]
) -> list[nybble.training.StepLoss]:
    """The losses of so many steps on windows of the text; a few are fetched on the way."""
    losses = []
    for number in range(1, steps + 1):
        losses.append(trainer.step(*windows(tokens, *shape, trainer.rng)))
        if number == 1 or number % TOLD == 0 or number == steps:
            tell(f"training: step {number} of {steps}: loss {losses[-1]:.3f}")
    tell()
    return losses


def main() -> None:
    """Write, fine-tune, write again, and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--prompt", default="The ")
    parser.add_argument("--characters", type=int, default=240)
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--out", type=Path, default=Path("character_tuned.pte"))
    arguments = parser.parse_args()
    if arguments.plot is not None:
        check_plot(arguments.plot)
    tokens = encode(arguments.text.read_text(encoding="utf-8"))
    cut = len(tokens) * 9 // 10
    program = nybble.load(MODEL, device=arguments.device)
    batch, length = program["forward"].inputs[0].shape
    trainer = nybble.Trainer(
        program,
        optimizer=nybble.AdamW(lr=arguments.lr),
        schedule=nybble.Cosine(steps=arguments.steps, warmup=arguments.steps // 10),
    )
    asked = (arguments.prompt, arguments.characters, arguments.temperature, (batch, length))
    batch_told = f"{program.device} computes a batch of {batch} texts for each character"
    print(f"{batch_told}; the first evaluation begins", file=sys.stderr, flush=True)
    print(f"--- before: loss {held_out_loss(trainer, tokens[cut:], (batch, length)):.3f}")
    print(write(trainer, *asked))
    started = time.perf_counter()
    losses = train(trainer, tokens[:cut], arguments.steps, (batch, length))
    values = [float(loss) for loss in losses]
    seconds = time.perf_counter() - started
    print(f"\n--- {arguments.steps} steps in {seconds:.1f} s on {program.device}")
    print(draw_curve(values))
    print(f"\n--- after: loss {held_out_loss(trainer, tokens[cut:], (batch, length)):.3f}")
    print(write(trainer, *asked))
    trainer.save(arguments.out)
    print(f"\nwrote {arguments.out}")
    if arguments.plot is not None:
        save_plot(arguments.plot, values, f"{arguments.text.name}: {arguments.steps} steps")
        print(f"wrote {arguments.plot}")


if __name__ == "__main__":
    try:
        main()
    except (nybble.NybbleError, OSError, UnicodeError) as error:
        sys.exit(f"Error: {error}")
