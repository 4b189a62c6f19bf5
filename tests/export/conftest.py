"""The tests of this folder need nybble[export]; without it they are not collected."""

from __future__ import annotations

import importlib.util

PACKAGES = ("torch", "torchao", "executorch")

if any(importlib.util.find_spec(name) is None for name in PACKAGES):
    collect_ignore_glob = ["test_*.py"]
