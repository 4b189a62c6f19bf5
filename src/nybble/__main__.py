"""``python -m nybble`` is the command ``nybble``."""

from __future__ import annotations

from nybble.cli import main

main()
