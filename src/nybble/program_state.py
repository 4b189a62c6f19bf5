"""The values that a program keeps on its device between calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nybble.contract import Array
from nybble.devices import States
from nybble.errors import ContractError

__all__ = ["ProgramState"]


class ProgramState(Mapping[str, Array]):
    """Values that stay on the device between calls, by name; read and written on request.

    Reading gives a copy; assigning replaces the content, which must have the state's type.
    """

    def __init__(self, states: States) -> None:
        self._states = states

    def __getitem__(self, name: str) -> Array:
        self._check(name)
        return self._states.read(name)

    def __setitem__(self, name: str, content: Array) -> None:
        self._check(name)
        self._states.write(name, content)

    def __contains__(self, name: object) -> bool:
        return name in self._states.names()

    def get(self, name: str, default: Any = None) -> Any:
        """The state's content, ``default`` where there is no such state."""
        return self._states.read(name) if name in self._states.names() else default

    def __iter__(self) -> Iterator[str]:
        return iter(self._states.names())

    def __len__(self) -> int:
        return len(self._states.names())

    def __repr__(self) -> str:
        return f"<ProgramState: {', '.join(self) or 'none'}>"

    def close(self) -> None:
        """Free all states."""
        self._states.close()

    def _check(self, name: str) -> None:
        if name not in self._states.names():
            listed = ", ".join(self._states.names()) or "none"
            raise ContractError(f"the program has no state {name!r}; its states: {listed}")
