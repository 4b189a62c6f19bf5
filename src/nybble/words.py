"""Sentences that count: one input, two inputs."""

from __future__ import annotations

__all__ = ["counted"]


def counted(count: int, noun: str) -> str:
    """``count`` and ``noun``, in the plural unless there is one: "1 value", "2 values"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
