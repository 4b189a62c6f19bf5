"""The command line: ``nybble --help`` lists the commands."""

from __future__ import annotations

from nybble.cli.main import main

__all__ = ["main"]
