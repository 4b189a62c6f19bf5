"""A device that goes away in the middle of a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nybble.errors import DeviceLostError
from nybble.training import Trainer

from .conftest import mlp, program_of
from .test_trainer import batch

DEVICE_LOST = -4


def lose_webgpu(device: Any) -> None:
    """Destroy the device behind nybble's back."""
    device.handle.destroy()


def lose_vulkan(device: Any) -> None:
    """Let the driver say from now on that its device is lost."""
    for name in ("vkQueueSubmit", "vkWaitSemaphores", "vkGetSemaphoreCounterValue"):
        setattr(device.vk, name, lambda *_: DEVICE_LOST)


@pytest.mark.device
@pytest.mark.parametrize(("name", "lose"), [("webgpu", lose_webgpu), ("vulkan", lose_vulkan)])
def test_checkpoint_outlives_the_device(
    name: str, lose: Callable[[Any], None], tmp_path: Path
) -> None:
    """Steps on a lost device are a sentence, and training goes on from the checkpoint."""
    trainer = Trainer(program_of(mlp(), name))
    trainer.step(*batch(0))
    trainer.checkpoint(tmp_path)
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    under_way = trainer.step(*batch(1))
    lose(trainer.engine.device)
    with pytest.raises(DeviceLostError, match="Load the program again to go on"):
        float(trainer.step(*batch(2)))
    for use in (lambda: trainer.checkpoint(tmp_path), lambda: float(under_way)):
        with pytest.raises(DeviceLostError):
            use()
    trainer.close()
    assert files == {path: path.read_bytes() for path in tmp_path.iterdir()}
    resumed = Trainer.resume(tmp_path, program_of(mlp(), name))
    whole = Trainer(program_of(mlp(), name))
    whole.step(*batch(0))
    assert float(whole.step(*batch(1))) == float(resumed.step(*batch(1)))
