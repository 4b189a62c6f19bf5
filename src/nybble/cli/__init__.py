"""The command line: ``nybble run | inspect | verify | profile | doctor | demo``."""

from __future__ import annotations

from nybble.cli.main import main

__all__ = ["main"]
