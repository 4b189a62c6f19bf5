"""States on a Vulkan device: memory that outlives plans and is shared by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nybble.contract import Array, Layout
from nybble.devices.base import check_state
from nybble.plan import Place, StatePlace

from .memory import Allocation

if TYPE_CHECKING:
    from .device import VulkanDevice

__all__ = ["VulkanStates"]


class VulkanStates:
    """Allocations by name."""

    def __init__(self, device: VulkanDevice) -> None:
        self._device = device
        self._allocations: dict[str, Allocation] = {}
        self._places: dict[str, Place] = {}

    def allocation(self, state: StatePlace, size: int) -> Allocation:
        """The memory of a state, made with its initial content the first time."""
        if state.name not in self._allocations:
            memory = self._device.memory("device")
            allocation = memory.allocate(size)
            try:
                self._device.transfer.clear([allocation])
                self._put(state.name, state.place, allocation, state.initial)
            except BaseException:
                memory.free(allocation)
                raise
            # Known only now: the next plan would take a state that was never filled for its own.
            self._allocations[state.name] = allocation
            self._places[state.name] = state.place
        return self._allocations[state.name]

    def names(self) -> tuple[str, ...]:
        """The states' names."""
        return tuple(self._allocations)

    def layouts(self) -> dict[str, Layout]:
        """The layout in which each lies."""
        return {name: place.layout for name, place in self._places.items()}

    def read(self, name: str) -> Array:
        """The content of a state."""
        place = self._places[name]
        if not place.nbytes:
            return np.zeros(place.value.shape, place.value.dtype.numpy)
        words = self._device.transfer.read(self._allocations[name], place.nbytes)
        assert place.layout.unpack is not None
        return place.layout.unpack(words, place.value.dtype, place.value.shape)

    def write(self, name: str, content: Array) -> None:
        """Replace the content of a state."""
        self._put(name, self._places[name], self._allocations[name], content)

    def close(self) -> None:
        """Free all states."""
        self._device.finish_quietly()
        for allocation in self._allocations.values():
            self._device.memory("device").free(allocation)
        self._allocations.clear()

    def __del__(self) -> None:
        if self._allocations:
            self._device.bury(self)

    def _put(self, name: str, place: Place, allocation: Allocation, content: Array) -> None:
        words = place.layout.pack(check_state(name, place, content), {})
        self._device.transfer.write([(allocation, words)])
