"""States on a WebGPU device: buffers that outlive plans and are shared by them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nybble.contract import Array, Layout
from nybble.devices.base import check_state
from nybble.plan import Place, StatePlace

if TYPE_CHECKING:
    from .device import WebGpuDevice

__all__ = ["WebGpuStates"]


class WebGpuStates:
    """Buffers by name."""

    def __init__(self, device: WebGpuDevice) -> None:
        self._device = device
        self._buffers: dict[str, Any] = {}
        self._places: dict[str, Place] = {}

    def buffer(self, state: StatePlace, size: int, usage: int) -> Any:
        """The buffer of a state, made with its initial content the first time."""
        if state.name not in self._buffers:
            self._buffers[state.name] = self._device.buffer(size, usage)
            self._places[state.name] = state.place
            self.write(state.name, state.initial)
        return self._buffers[state.name]

    def names(self) -> tuple[str, ...]:
        """The states' names."""
        return tuple(self._buffers)

    def layouts(self) -> dict[str, Layout]:
        """The layout in which each lies."""
        return {name: place.layout for name, place in self._places.items()}

    def read(self, name: str) -> Array:
        """The content of a state."""
        place = self._places[name]
        if not place.nbytes:
            return np.zeros(place.value.shape, place.value.dtype.numpy)
        with self._device.errors():
            data = self._device.handle.queue.read_buffer(self._buffers[name], 0, place.nbytes)
        assert place.layout.unpack is not None
        words = np.frombuffer(data, np.uint32)
        return place.layout.unpack(words, place.value.dtype, place.value.shape)

    def write(self, name: str, content: Array) -> None:
        """Replace the content of a state."""
        place = self._places[name]
        words = place.layout.pack(check_state(name, place, content), {})
        if words.size:
            with self._device.errors():
                self._device.handle.queue.write_buffer(self._buffers[name], 0, words)

    def close(self) -> None:
        """Free all states."""
        for buffer in self._buffers.values():
            buffer.destroy()
        self._buffers.clear()
