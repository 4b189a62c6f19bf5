"""Fine-tunes the 4-bit layers of a program, and writes the program back."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nybble.arguments import refuse_missing_folder
from nybble.contract import Array
from nybble.errors import ContractError, NybbleError
from nybble.program import Method, Program, load
from nybble.source import as_path
from nybble.words import counted

from .adapter import adapter_config, adapter_tensors, new_adapters
from .checkpoint import (
    Checkpoint,
    check_states,
    generator_state,
    program_digest,
    read_checkpoint,
    write_checkpoint,
)  # fmt: skip
from .engine import Engine
from .evaluation import Evaluation, Totals, checked_batches
from .files import safetensors_bytes, write_whole
from .inputs import fitting_inputs, integers_of, plan_for
from .layers import QuantizedLayer, find_layers, select_layers
from .loss import Loss, check_labels, labels_spec
from .optimizer import AdamW, Constant, Schedule, hyper_table
from .options import Mode, Options, adapter_sizes, check_program, checked_globs, generator
from .pending import OnNonFinite, StepLoss, Steps
from .rewrite import rewrite_program
from .sharing import refuse_frozen_sharers, refuse_merging_shared, with_stored_codes_once
from .step import IN_FLIGHT, Setup
from .tuned import merged_codes, replacements

__all__ = ["Trainer"]


class Trainer:
    """Trains 4-bit linear layers of a program where they will be deployed.

    A batch has the shapes for which the program was exported: its batch size is fixed. All state
    (latents, moments, codes) stays on the program's device; a step is one submission, in which
    nothing is fetched but a loss, when asked for.

    Args:
        program: a loaded program with ``linear_q4gsw`` or ``linear_dq8ca_q4gsw`` layers.
        loss: ``cross_entropy`` (labels int32 or int64, negative ones ignored) or ``mse`` of the
            first output, or a function of (builder, outputs, labels) that returns a float32 scalar.
        trainable: glob, or several, over the layers' names ``METHOD.linear_I``, in call order.
        mode: ``latent`` trains a float weight behind each layer's codes, straight through the
            rounding; ``adapter`` trains low-rank factors beside frozen codes.
        optimizer: step sizes and decay.
        schedule: factors of the learning rate by applied step.
        memory_budget: bytes for activations and gradients of a step; None for no limit. See
            :func:`nybble.training.memory.fit_memory`.
        on_nonfinite: a step whose loss or gradient holds a NaN or an infinity is not applied;
            ``error`` raises when it is found out, at the latest 16 steps later, ``count`` goes on.
        method: the method to train; None for ``forward``, or the only one.
        rank: of an adapter; 8 by default.
        alpha: an adapter's share is multiplied by alpha / rank; 16 by default.
        seed: of ``rng``, which draws adapters and is the caller's for shuffling.

    ``notes`` is a dict of the caller's, of what JSON can hold: checkpoints keep it.

    Raises:
        ContractError: no 4-bit layer, a glob that matches none, a loss that does not fit or does
            not depend on a trained layer (for a function as loss the first step says so), or a
            trained weight that a call which is not trained reads too.
        UnsupportedProgramError: operators behind a trained layer have no gradient.
        OutOfDeviceMemoryError: a step does not fit the budget or the device.
    """

    def __init__(
        self,
        program: Program,
        loss: Loss = "cross_entropy",
        *,
        trainable: str | Sequence[str] = "*",
        mode: Mode = "latent",
        optimizer: AdamW | None = None,
        schedule: Schedule | None = None,
        memory_budget: int | None = None,
        on_nonfinite: OnNonFinite = "error",
        method: str | None = None,
        rank: int | None = None,
        alpha: float | None = None,
        seed: int = 0,
    ) -> None:
        check_program(program)
        globs = checked_globs(trainable)
        self._options = Options(
            globs, mode, optimizer or AdamW(), schedule or Constant(), memory_budget,
            on_nonfinite, method, *adapter_sizes(mode, rank, alpha),
        )  # fmt: skip
        self.rng = generator(seed)
        self.notes: dict[str, Any] = {}
        self.program, self.loss = program, loss
        self._method = program.method(method)
        self._graph = with_stored_codes_once(self._method.graph)
        self.layers = select_layers(find_layers(self._graph), globs)
        _refuse_states(self._method)
        if mode != "adapter":
            refuse_frozen_sharers(self._graph, self.layers)
        adapted = self.layers if mode == "adapter" else ()
        self._adapters = new_adapters(adapted, self._options.rank, self._options.alpha, self.rng)
        self._labels: tuple[str, tuple[int, ...]] | None = None
        self._engine: Engine | None = None
        self._steps = Steps((), on_nonfinite, 0)
        self._closed = False
        if not callable(loss):
            self._prepare(labels_spec(loss, self._graph))

    def step(self, *batch: Any) -> StepLoss:
        """Take one step.

        Args:
            batch: the program's inputs, then the labels.

        Returns:
            The loss, not yet fetched: ``float(loss)`` waits for it.

        Raises:
            ContractError: wrong count, shapes or types, or labels that are no class.
            NonFiniteError: an earlier step was not applied (``on_nonfinite="error"``).
            DeviceError: the device failed; the last checkpoint is as it was.
        """
        arrays = self._batch(batch)
        self._steps.settle(leaving=IN_FLIGHT - 1)
        applied = self._steps.applied
        table = hyper_table(self._options.optimizer, self._options.schedule, applied, IN_FLIGHT)
        pending = self.engine.submit([*arrays, table, np.array([applied], np.int32)])
        return self._steps.started(pending)

    def forward(self, *inputs: Any) -> Any:
        """The program's outputs, as numpy arrays, with the weights of now."""
        self._steps.settle()
        results = self.engine.forward(fitting_inputs(self._method, self._graph, inputs))
        return results[0] if len(results) == 1 else tuple(results)

    def evaluate(self, batches: Iterable[Sequence[Any]]) -> Evaluation:
        """Mean loss, and accuracy where labels are classes, over batches of (inputs, labels).

        Each batch weighs as many labels as it has that are not ignored.
        """
        self._steps.settle()
        totals = Totals(self.loss)
        for batch in checked_batches(batches):
            arrays = self._batch(batch)
            loss, *outputs = self.engine.loss(arrays)
            totals.add(float(loss), outputs, arrays[-1])
        return totals.result()

    @property
    def steps(self) -> int:
        """Steps applied so far, those under way waited for."""
        self._steps.settle()
        return self._steps.applied

    @property
    def skipped(self) -> int:
        """Steps that were not applied, among those settled."""
        return self._steps.skipped

    @property
    def faults(self) -> tuple[str, ...]:
        """Why steps were not applied, a sentence each."""
        return tuple(self._steps.faults)

    @property
    def engine(self) -> Engine:
        """The plans and the states on the device."""
        self._refuse_closed()
        if self._engine is None:
            raise NybbleError(
                "the trainer has no plan yet: with a function as loss, the first step makes it"
            )
        return self._engine

    def state(self, name: str) -> Array:
        """A state's content, such as ``forward.linear_0.latent``."""
        self._steps.settle()
        names = self.engine.states.names()
        if name not in names:
            raise ContractError(f"the trainer has no state {name!r}; it has {', '.join(names)}")
        return self.engine.states.read(name)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the program with its new codes, or in adapter mode the adapters.

        A path that ends in ``.pte`` takes the program: only the codes' bytes (and names that are
        their digests) differ from the original, scales are as they were. In adapter mode, call
        :meth:`merge` first. Any other path is for adapters: a ``.safetensors`` file, or a
        folder with PEFT's two files.

        Raises:
            NybbleError: the file cannot be written, or the weights are not in the program.
            ContractError: adapters that are not merged cannot go into a program.
        """
        target = as_path(path, "path")
        if self._adapters and target.suffix != ".pte":
            self._save_adapters(target)
            return
        if target.suffix != ".pte":
            raise ContractError(f"{target}: a program's name ends in .pte")
        if any(self.state(a.factor_names[1]).any() for a in self._adapters):
            raise ContractError(
                "the adapters are not part of the program yet: call trainer.merge() before "
                "saving it, or name a .safetensors file"
            )
        refuse_missing_folder(target, "program")
        changed = {layer.name: self._codes(layer) for layer in self.layers}
        items = replacements(self.layers, changed)
        write_whole(target, rewrite_program(self.program.data, items))

    def merge(self) -> None:
        """Round the adapters into their layers' codes, and set them to zero.

        Raises:
            ContractError: the trainer has no adapters, or another call reads one's weight.
        """
        if not self._adapters:
            raise ContractError('only a trainer of mode="adapter" has adapters to merge')
        refuse_merging_shared(self._graph, self.layers)
        for adapter in self._adapters:
            down, up = (self.state(name) for name in adapter.factor_names)
            codes = merged_codes(adapter, self._codes(adapter.layer), down, up)
            self.engine.states.write(f"{adapter.name}.codes", codes)
            self.engine.states.write(adapter.factor_names[1], np.zeros_like(up))

    def checkpoint(self, directory: str | os.PathLike[str]) -> None:
        """Write everything that :meth:`resume` needs into a folder, replacing what it held.

        Raises:
            NybbleError: it cannot be written; the previous checkpoint is whole.
            ContractError: a checkpoint cannot hold ``notes``, ``rng`` or the schedule, or the
                folder holds another program or its checkpoint.
        """
        self._steps.settle()
        names = self.engine.states.names()
        settings = {
            **self._options.__dict__,
            "loss": None if callable(self.loss) else self.loss,
            "labels": self._labels,
            "rng": generator_state(self.rng),
            "skipped": self._steps.skipped,
            "shapes": [value.shape for value in self._graph.inputs],
            "integers": integers_of(self._graph),
            "notes": self.notes,
        }
        digest = program_digest(self.program.data)
        states = {name: self.engine.states.read(name) for name in names}
        write_checkpoint(directory, Checkpoint(states, settings, digest), self.program.data)

    @classmethod
    def resume(
        cls,
        directory: str | os.PathLike[str],
        program: Program | None = None,
        *,
        loss: Loss | None = None,
        device: str = "auto",
    ) -> Trainer:
        """The trainer of a checkpoint; it goes on as if it had never stopped, bit for bit.

        Args:
            directory: what :meth:`checkpoint` wrote.
            program: the program, if it is loaded already; else the checkpoint's copy is loaded.
            loss: needed again where it was a function.
            device: for the checkpoint's copy.

        Raises:
            NybbleError: there is no checkpoint, or it cannot be read.
            ContractError: ``program`` is another one than the checkpoint's.
        """
        saved, data = read_checkpoint(directory)
        if program is not None:
            check_program(program)
        program = program or load(data, device=device)
        if program_digest(program.data) != saved.program:
            raise ContractError(
                f"the checkpoint in {directory} is of another program than the one given; leave "
                "that out: the checkpoint's own lies beside it"
            )
        settings = dict(saved.settings)
        labels, rng = settings.pop("labels"), settings.pop("rng")
        skipped, name = settings.pop("skipped"), settings.pop("loss")
        known: Loss | None = loss if name is None else name
        if known is None:
            raise ContractError("the checkpoint's loss was a function: pass it again as loss=...")
        method, notes = program.method(settings["method"]), settings.pop("notes")
        plan_for(method, settings.pop("shapes"), settings.pop("integers"))
        if settings["mode"] != "adapter":
            del settings["rank"], settings["alpha"]
        trainer = cls(program, known, **settings)
        trainer._restore(directory, saved.states, (labels[0], tuple(labels[1])), rng, skipped)
        trainer.notes = notes
        return trainer

    def __repr__(self) -> str:
        trained = counted(len(self.layers), "adapter" if self._adapters else "layer")
        steps = "closed" if self._closed else f"{counted(self._steps.applied, 'step')} applied"
        where = f"{self._method.name} on {self.program.device.name}"
        return f"<Trainer of {where}: {trained}, {steps}>"

    def close(self) -> None:
        """Free what the device holds for training; the program stays. Nothing else can follow."""
        self._closed = True
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def _refuse_closed(self) -> None:
        if self._closed:
            raise NybbleError("the trainer is closed; make another, or resume a checkpoint")

    def _restore(
        self, directory: Any, states: Any, labels: tuple[str, tuple[int, ...]], rng: Any,
        skipped: int,
    ) -> None:  # fmt: skip
        if self._engine is None:
            self._prepare(labels)
        check_states(directory, states, self.engine.states.names())
        for name, content in states.items():
            self.engine.states.write(name, content)
        applied = int(states["applied"][0])
        self._steps = Steps(self.engine.checked, self._options.on_nonfinite, applied, skipped)
        self.rng.bit_generator.state = rng

    def _prepare(self, labels: tuple[str, tuple[int, ...]]) -> None:
        setup = Setup(self._graph, self.layers, self._adapters, self.loss, labels)
        self._labels = labels
        self._engine = Engine(self._method.device, setup, self._options.memory_budget)
        self._steps = Steps(self._engine.checked, self._options.on_nonfinite, 0)

    def _batch(self, batch: Sequence[Any]) -> list[Array]:
        """Inputs and labels of a batch, checked and converted to the graph's types."""
        if len(batch) != len(self._method.inputs) + 1:
            listed = ", ".join(map(str, self._method.inputs))
            raise ContractError(f"a batch is {listed} and the labels; received {len(batch)} arrays")
        arrays = fitting_inputs(self._method, self._graph, batch[:-1])
        self._refuse_closed()
        if self._engine is None:
            self._prepare(labels_spec(self.loss, self._graph, batch[-1]))
        assert self._labels is not None
        output = self._graph.outputs[0].shape
        labels = check_labels(self.loss, batch[-1], *self._labels, output[-1] if output else 0)
        return [*arrays, labels]

    def _codes(self, layer: QuantizedLayer) -> Array:
        first = next(item for item in self.layers if item.weight is layer.weight)
        return self.state(f"{first.name}.codes")

    def _save_adapters(self, path: Path) -> None:
        names = [name for a in self._adapters for name in a.factor_names]
        tensors = adapter_tensors(self._adapters, {name: self.state(name) for name in names})
        first = self._adapters[0]
        metadata = {"format": "pt", "r": str(first.rank), "lora_alpha": str(first.alpha)}
        data = safetensors_bytes(tensors, metadata)
        if path.suffix == ".safetensors":
            refuse_missing_folder(path, "file")
            write_whole(path, data)
            return
        write_whole(path / "adapter_model.safetensors", data)
        write_whole(path / "adapter_config.json", adapter_config(self._adapters).encode())


def _refuse_states(method: Method) -> None:
    if method.graph.states:
        raise ContractError(
            f"method '{method.name}' keeps state between calls, such as a cache; train a method "
            "without"
        )
