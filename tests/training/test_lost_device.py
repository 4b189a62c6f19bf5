"""A device that goes away in the middle of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from nybble.errors import DeviceError
from nybble.training import Trainer

from .conftest import mlp, program_of
from .test_trainer import batch


@pytest.mark.device
def test_checkpoint_outlives_the_device(tmp_path: Path) -> None:
    """A step on a lost device is a sentence, and training goes on from the checkpoint."""
    trainer = Trainer(program_of(mlp(), "webgpu"))
    trainer.step(*batch(0))
    trainer.checkpoint(tmp_path)
    trainer.engine.device.handle.destroy()  # type: ignore[attr-defined]
    with pytest.raises(DeviceError):
        float(trainer.step(*batch(1)))
    resumed = Trainer.resume(tmp_path, program_of(mlp(), "webgpu"))
    whole = Trainer(program_of(mlp(), "webgpu"))
    whole.step(*batch(0))
    assert float(whole.step(*batch(1))) == float(resumed.step(*batch(1)))
