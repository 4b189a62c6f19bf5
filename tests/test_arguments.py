"""Arguments of another kind than declared: a sentence of nybble's own, not Python's traceback."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nybble

lib: Any = nybble
"""The package without its types: what is passed here is wrong on purpose."""

MODEL = Path(nybble.__file__).parent / "demo" / "digits_q4.pte"


def load(**options: Any) -> Any:
    """The demo's 4-bit program on the host."""
    return lib.load(MODEL, device="host", **options)


def trainer(**options: Any) -> Any:
    """A trainer of the demo's 4-bit program."""
    return lib.Trainer(load(), **options)


def as_text() -> None:
    """Load what was opened as text."""
    with MODEL.open(encoding="latin-1") as file:
        lib.load(file, device="host")


X = np.zeros((60, 8, 8), np.float32)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (as_text, r"opened as text.*open\(path, 'rb'\)"),
        (lambda: lib.load(io.StringIO("a"), device="host"), "opened as text"),
        (lambda: lib.load(5, device="host"), "expected a path, bytes or .*, received int"),
        (lambda: lib.load("a\0b", device="host"), "holds a null character"),
        (lambda: load(external=5), "external: expected a list of .ptd files, received int"),
        (lambda: load(external=None), "external: expected a list of .ptd files, received NoneType"),
        (lambda: load().profile(X, repeats="5"), "repeats: expected at least 1 run, received '5'"),
        (lambda: load().profile(X, repeats=2.5), "repeats: expected at least 1 run, received 2.5"),
        (lambda: load()(X.tolist()), "expected an array of .* received list"),
        (lambda: load().method(3), "the program has no method 3; it has forward"),
        (lambda: lib.compare(MODEL, devices=5), "devices: expected at least two"),
        (
            lambda: lib.random_inputs.random_inputs((), -1),
            "seed: expected an integer from 0 on, received -1",
        ),
        (
            lambda: lib.random_inputs.random_inputs((), "a"),
            "seed: expected an integer from 0 on, received 'a'",
        ),
        (lambda: lib.Trainer("m.pte"), r"program: expected .*received str; nybble.load\('m.pte'\)"),
        (lambda: lib.Trainer(MODEL), "program: expected a loaded program.*nybble.load"),
        (
            lambda: lib.Trainer(load()["forward"]),
            "program: .* received Method; pass the program and",
        ),
        (lambda: trainer(trainable=5), "trainable: expected a glob or several, received 5"),
        (lambda: trainer(trainable=[5]), r"trainable: expected a glob or several, received \[5\]"),
        (lambda: trainer(alpha="a", mode="adapter"), "alpha: expected a number, received 'a'"),
        (lambda: trainer(seed=-1), "seed: expected .* received -1"),
        (lambda: trainer(seed="a"), "seed: expected .* received 'a'"),
        (lambda: trainer(memory_budget=-1), "memory_budget: expected .* received -1"),
        (lambda: trainer(mode=["latent"]), "mode: expected 'latent' or 'adapter'"),
        (lambda: trainer(loss=5), "loss: expected 'cross_entropy', 'mse' or a function"),
        (lambda: trainer().evaluate(5), "evaluate: expected batches of .* received int"),
        (lambda: trainer().evaluate([5]), "evaluate: expected batches of .* received .* int"),
        (lambda: trainer().step(X, [[1], [1, 2]]), "labels: expected an array"),
        (lambda: trainer().step(X, None), "labels: expected"),
        (lambda: trainer().save(None), "path: expected a path, received NoneType"),
        (lambda: trainer().checkpoint(5), "directory: expected a path, received int"),
        (lambda: lib.Trainer.resume(5), "directory: expected a path, received int"),
        (lambda: lib.AdamW(lr="1"), "AdamW: expected lr >= 0, received '1'"),
        (lambda: lib.AdamW(betas=0.9), "AdamW: expected betas of two numbers"),
        (lambda: lib.AdamW(betas=("a", "b")), "AdamW: expected betas of two numbers"),
        (lambda: lib.Cosine(steps="9"), "Cosine: expected .* steps='9'"),
        (lambda: lib.Cosine(steps=None), "Cosine: expected .* steps=None"),
        (lambda: lib.Linear(9, warmup="1"), "Linear: expected .* warmup='1'"),
        (lambda: lib.Constant("1"), "Constant: expected .* warmup='1'"),
        (
            lambda: list(lib.training.whole_batches([1], [1], 1)),
            "data: expected numpy arrays, received list",
        ),
        (
            lambda: list(lib.training.whole_batches(X, X, 0)),
            "rows: expected a positive integer, received 0",
        ),
        (lambda: list(lib.training.whole_batches(X, X, 1.5)), "rows: expected a positive integer"),
        (
            lambda: list(lib.training.shuffled_batches(X, X, 2, 7)),
            "rng: expected .*default_rng.* received int",
        ),
    ],
)
def test_an_argument_of_another_kind_is_a_contract_error(
    use: Callable[[], Any], message: str
) -> None:
    """Says which argument, what is expected and what was received."""
    with pytest.raises(nybble.ContractError, match=message):
        use()


def test_a_method_of_a_program_that_lacks_it_is_refused_by_the_trainer() -> None:
    """The method's name, and the names there are."""
    with pytest.raises(nybble.ContractError, match="no method 'encode'; it has forward"):
        trainer(method="encode")
