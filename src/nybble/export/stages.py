"""Shows which stage of an export is running, on standard error, and keeps the times."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

__all__ = ["Stages"]


class Stages:
    """The stages of one export; silent unless ``shown``."""

    def __init__(self, *, shown: bool) -> None:
        self._console = Console(stderr=True, quiet=not shown, highlight=False)
        self._seconds: list[tuple[str, float]] = []

    @property
    def seconds(self) -> tuple[tuple[str, float], ...]:
        """Every finished stage and the seconds it took, in order."""
        return tuple(self._seconds)

    @contextmanager
    def stage(self, name: str) -> Iterator[Callable[[str], None]]:
        """Run the block as stage ``name``; the function given to it changes the line shown."""
        started = time.perf_counter()
        with self._console.status(name) as status:
            yield status.update
        elapsed = time.perf_counter() - started
        self._seconds.append((name, elapsed))
        self._console.print(f"{name:<40} {elapsed:6.1f} s")
