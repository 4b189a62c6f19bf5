"""Wins back with 4-bit training what quantization and a shift of the data cost.

Run ``python examples/digits_recovery.py``; it needs nothing but nybble. The program that ships
with the package reads 8 x 8 handwritten digits; it was trained in float32 and exported with 4-bit
weights. Then its users turn their paper by 20 degrees. nybble fine-tunes the very program that is
deployed, and writes it back with new codes.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import nybble
from nybble.demo.rotated import DEGREES, Q4_PROGRAM, load_rotated_digits
from nybble.training import shuffled_batches, whole_batches


def main() -> None:
    """Fine-tune, save, and print accuracies on the held-out digits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--out", type=Path, default=Path("digits_tuned.pte"))
    arguments = parser.parse_args()
    digits = load_rotated_digits()
    program = nybble.load(Q4_PROGRAM, device=arguments.device)
    rows = program["forward"].inputs[0].shape[0]
    steps = arguments.epochs * (len(digits.train_labels) // rows)
    trainer = nybble.Trainer(
        program,
        optimizer=nybble.AdamW(lr=4e-3),
        schedule=nybble.Cosine(steps=steps, warmup=steps // 10),
    )
    upright = list(whole_batches(digits.upright_images, digits.test_labels, rows))
    turned = list(whole_batches(digits.test_images, digits.test_labels, rows))
    print(f"float32, upright                {digits.float_accuracies[0]:.2%}")
    print(f"4-bit, upright                  {trainer.evaluate(upright).accuracy:.2%}")
    print(f"4-bit, turned by {DEGREES} degrees     {trainer.evaluate(turned).accuracy:.2%}")
    started = time.perf_counter()
    for _ in range(arguments.epochs):
        data = shuffled_batches(digits.train_images, digits.train_labels, rows, trainer.rng)
        for images, labels in data:
            trainer.step(images, labels)
    tuned = trainer.evaluate(turned)
    seconds = time.perf_counter() - started
    print(f"4-bit, turned, fine-tuned       {tuned.accuracy:.2%}")
    trainer.save(arguments.out)
    print(f"{steps} steps in {seconds:.1f} s on {program.device}; wrote {arguments.out}")


if __name__ == "__main__":
    try:
        main()
    except nybble.NybbleError as error:
        sys.exit(f"Error: {error}")
